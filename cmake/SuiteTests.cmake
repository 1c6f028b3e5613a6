# stretto_suite_tests(PROGRAM LABEL FOLDER SUITES): one CTest test per SUITES suites of a GoogleTest program, run
# in FOLDER and named after them. CMake's own gtest_discover_tests makes one per test, and a program that links
# libtorch then spends most of its time on loading it. The suites are listed when CTest runs, as by DISCOVERY_MODE
# PRE_TEST.
function(stretto_suite_tests program label folder suites)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/${program}_suites.cmake)
  file(GENERATE OUTPUT ${file} CONTENT "include(\"${PROJECT_SOURCE_DIR}/cmake/AddSuites.cmake\")
stretto_add_suites(\"$<TARGET_FILE:${program}>\" \"${label}\" \"${folder}\" ${suites})
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${file})
endfunction()
