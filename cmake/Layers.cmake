# stretto_layer(NAME [TORCH] [LIGHT] [COMPUTING_TESTS] [USES layer...] [TEST_USES layer...] [LIBS target...])
#
# A layer is a folder, a static library `stretto_NAME` and a test binary `stretto_NAME_test`; a layer's folder
# may lie inside of another's ("comm/mpi": stretto_comm_mpi). USES lists the layers whose headers it includes,
# TEST_USES the further ones that its tests include; tests/layering_test reads the same lists from layers.txt
# and rejects any other #include, and layers that are listed and not included. TORCH marks the layers that use
# libtorch. LIGHT marks layers whose run time does not matter: -O1 takes a quarter off their compile time
# (STRETTO_LIGHT_FLAGS).
# COMPUTING_TESTS marks those whose tests, without libtorch, run longer at -O0 than they compile at -O1.
# `make test-asan-torch-free` and `make test-tsan` run the tests of the layers without libtorch; the latter
# also those that stretto_thread_tests names.
set(STRETTO_LAYERS_FILE ${CMAKE_BINARY_DIR}/layers.txt)
file(WRITE ${STRETTO_LAYERS_FILE} "")
set(STRETTO_CUDA_OBJECTS_FILE ${CMAKE_BINARY_DIR}/cuda_objects.txt)
file(WRITE ${STRETTO_CUDA_OBJECTS_FILE} "")
# For `make test-tsan`: the test binaries to build, and the labels of the tests to run.
set(STRETTO_SANITIZED_TARGETS_FILE ${CMAKE_BINARY_DIR}/sanitized_targets.txt)
set(STRETTO_SANITIZED_LABELS_FILE ${CMAKE_BINARY_DIR}/sanitized_labels.txt)
file(WRITE ${STRETTO_SANITIZED_TARGETS_FILE} "")
file(WRITE ${STRETTO_SANITIZED_LABELS_FILE} "threads\n")

# The library of the layer `name`, as the variable `result`.
function(stretto_layer_target name result)
  string(REPLACE "/" "_" suffix ${name})
  set(${result} stretto_${suffix} PARENT_SCOPE)
endfunction()

# Those of the layers that follow `result`.
function(stretto_layer_libraries what result)
  set(libraries "")
  foreach(used IN LISTS ARGN)
    stretto_layer_target(${used} library)
    if(NOT TARGET ${library})
      message(FATAL_ERROR "stretto_layer(${what} names \"${used}\", which is not declared above; a layer may use only "
        "layers that are declared before it")
    endif()
    list(APPEND libraries ${library})
  endforeach()
  set(${result} ${libraries} PARENT_SCOPE)
endfunction()

# stretto_link_layers_first(TARGET): names the archives of the layers that TARGET links in front of its objects,
# too. TARGET, at -O0 or -O1, has copies of the inline functions that it shares with the layers (of the standard
# library, of libtorch), and of equal copies the linker mold keeps the first one: here that of the layers, which
# are optimised. Otherwise the layers run slow code in tests only. Other linkers find nothing to load there.
function(stretto_link_layers_first target)
  get_target_property(type ${target} TYPE)
  if(NOT MOLD OR NOT type STREQUAL "EXECUTABLE")
    return()
  endif()
  get_target_property(linked ${target} LINK_LIBRARIES)
  set(layers "")
  foreach(library IN LISTS linked)
    if(TARGET ${library})
      get_target_property(used ${library} STRETTO_LAYERS)
      if(used)
        list(APPEND layers ${used})
      endif()
    endif()
  endforeach()
  if(NOT layers)
    return()
  endif()
  list(REMOVE_DUPLICATES layers)
  list(TRANSFORM layers REPLACE "(.+)" "$<TARGET_FILE:\\1>")
  target_link_options(${target} PRIVATE ${layers})
endfunction()

function(stretto_layer name)
  cmake_parse_arguments(ARG "TORCH;LIGHT;COMPUTING_TESTS" "" "USES;TEST_USES;LIBS" ${ARGN})
  list(JOIN ARG_USES " " uses)
  list(JOIN ARG_TEST_USES " " test_uses)
  file(APPEND ${STRETTO_LAYERS_FILE} "${name}: ${uses} | ${test_uses}\n")

  set(dir ${CMAKE_CURRENT_SOURCE_DIR}/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  file(GLOB_RECURSE inner_layers ${dir}/*/README.md)
  foreach(inner IN LISTS inner_layers)
    get_filename_component(inner ${inner} DIRECTORY)
    list(FILTER sources EXCLUDE REGEX "^${inner}/")
  endforeach()
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")

  # Bare loops do not use libtorch: compiled separately, without the precompiled header, and vectorised.
  set(loops ${sources})
  list(FILTER loops INCLUDE REGEX "_loops\\.cpp$")
  set_source_files_properties(${loops} PROPERTIES COMPILE_OPTIONS -O3
    SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)

  stretto_layer_target(${name} lib)
  add_library(${lib} STATIC ${sources})
  target_include_directories(${lib} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:include>)
  # Names that the package exports are those that exist where it is found: there are no stretto_options, and
  # another torch.
  target_link_libraries(${lib} PRIVATE $<BUILD_INTERFACE:$<TARGET_NAME_IF_EXISTS:stretto_options>> PUBLIC ${ARG_LIBS})
  set(light "")
  if(ARG_LIGHT)
    target_compile_options(${lib} PRIVATE ${STRETTO_LIGHT_FLAGS})
    if(TARGET stretto_light_pch)
      set(light "_light")
    endif()
  endif()
  stretto_layer_libraries("${name}: USES" used_libraries ${ARG_USES})
  target_link_libraries(${lib} PUBLIC ${used_libraries})
  set(layers ${lib})
  foreach(used IN LISTS used_libraries)
    get_target_property(below ${used} STRETTO_LAYERS)
    list(APPEND layers ${below})
  endforeach()
  list(REMOVE_DUPLICATES layers)
  set_target_properties(${lib} PROPERTIES STRETTO_LAYERS "${layers}")
  if(ARG_TORCH)
    target_link_libraries(${lib} PUBLIC $<IF:$<TARGET_EXISTS:stretto_torch>,stretto_torch,stretto::torch>)
    stretto_precompile(${lib} stretto_torch${light}_pch)
  else()
    stretto_precompile(${lib} stretto${light}_pch)
  endif()
  stretto_install_layer(${lib})

  if(STRETTO_TESTS AND tests)
    add_executable(${lib}_test ${tests})
    stretto_layer_libraries("${name}: TEST_USES" test_libraries ${ARG_TEST_USES})
    target_link_libraries(${lib}_test PRIVATE ${lib} ${test_libraries} stretto_options GTest::gmock stretto_test_main)
    target_compile_definitions(${lib}_test PRIVATE STRETTO_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    if(ARG_TORCH)
      stretto_precompile(${lib}_test stretto_torch_test_pch)
    else()
      stretto_precompile_test(${lib}_test ${ARG_COMPUTING_TESTS})
      file(APPEND ${STRETTO_SANITIZED_TARGETS_FILE} "${lib}_test\n")
      file(APPEND ${STRETTO_SANITIZED_LABELS_FILE} "${name}\n")
    endif()
    set_target_properties(${lib}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests
      BUILD_RPATH ${CMAKE_BINARY_DIR}/lib/stretto)
    # A suite that starts, stops or kills processes, or changes its environment, is alone in its process.
    if(ARG_TORCH AND NOT name STREQUAL "comm")
      set(suites 8)
    else()
      set(suites 1)
    endif()
    stretto_suite_tests(${lib}_test ${name} ${CMAKE_BINARY_DIR} ${suites})
  endif()
endfunction()

# stretto_hash_of(RESULT PATTERN...): a hash of the contents of the files that match, without tests.
function(stretto_hash_of result)
  file(GLOB files CONFIGURE_DEPENDS ${ARGN})
  list(FILTER files EXCLUDE REGEX "_test\\.cpp$")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
  set(all "")
  foreach(file IN LISTS files)
    file(SHA256 ${file} hash)
    string(APPEND all ${hash})
  endforeach()
  string(SHA256 all "${all}")
  string(SUBSTRING ${all} 0 16 all)
  set(${result} ${all} PARENT_SCOPE)
endfunction()

# stretto_thread_tests(LAYER PATTERN...): the tests of a TORCH layer that `make test-tsan` runs too, by
# GoogleTest's patterns: those whose threads share memory by stretto's code. libtorch is not instrumented.
function(stretto_thread_tests name)
  stretto_layer_target(${name} lib)
  if(NOT STRETTO_SANITIZE STREQUAL "thread" OR NOT TARGET ${lib}_test)
    return()
  endif()
  file(APPEND ${STRETTO_SANITIZED_TARGETS_FILE} "${lib}_test\n")
  list(JOIN ARGN ":" filter)
  add_test(NAME Threads.${name} COMMAND ${lib}_test --gtest_filter=${filter} WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
  set_tests_properties(Threads.${name} PROPERTIES LABELS threads TIMEOUT 300 FAIL_REGULAR_EXPRESSION "Running 0 tests")
endfunction()

# stretto_program(NAME LAYER FOLDER RPATH...): the program whose main() is LAYER/main.cpp, in FOLDER of the
# build tree and of an installation, where it searches RPATH and the system's folders for shared libraries.
function(stretto_program name layer folder)
  add_executable(${name} ${CMAKE_CURRENT_SOURCE_DIR}/${layer}/main.cpp)
  stretto_layer_target(${layer} lib)
  target_link_libraries(${name} PRIVATE ${lib} stretto_options)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${folder}
    BUILD_RPATH ${CMAKE_BINARY_DIR}/lib/stretto INSTALL_RPATH "${ARGN}")
  install(TARGETS ${name} RUNTIME DESTINATION ${folder})
endfunction()

# stretto_mpi_library(): the layer comm/mpi, if there is MPI: a shared library that comm loads, in lib/stretto
# of the build tree and of an installation.
function(stretto_mpi_library)
  file(APPEND ${STRETTO_LAYERS_FILE} "comm/mpi: comm\n")
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
  message(STATUS "stretto: MPI ${MPI_CXX_FOUND} ${MPI_CXX_LIBRARIES}")
  if(NOT MPI_CXX_FOUND)
    return()
  endif()
  add_library(stretto_mpi MODULE comm/mpi/backend.cpp comm/mpi/communicator.cpp)
  target_include_directories(stretto_mpi PRIVATE ${PROJECT_SOURCE_DIR})
  target_compile_definitions(stretto_mpi PRIVATE STRETTO_VERSION="${PROJECT_VERSION}")
  target_link_libraries(stretto_mpi PRIVATE stretto_options stretto_torch MPI::MPI_CXX)
  stretto_precompile(stretto_mpi stretto_torch_pch)
  set_target_properties(stretto_mpi PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/stretto
    INSTALL_RPATH $ORIGIN/torch/lib)
  install(TARGETS stretto_mpi LIBRARY DESTINATION lib/stretto)
endfunction()

# stretto_choose(LAYER NAME): compiles NAME.cpp if this build has CUDA, else no_NAME.cpp. The objects of CUDA
# parts are listed in cuda_objects.txt for `make check-cuda`.
function(stretto_choose layer name)
  stretto_layer_target(${layer} lib)
  if(STRETTO_CUDA)
    set(dropped no_${name})
    file(RELATIVE_PATH here ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
    file(APPEND ${STRETTO_CUDA_OBJECTS_FILE} "${here}/CMakeFiles/${lib}.dir/${layer}/${name}.cpp.o\n")
  else()
    set(dropped ${name})
  endif()
  set_source_files_properties(${CMAKE_CURRENT_SOURCE_DIR}/${layer}/${dropped}.cpp PROPERTIES HEADER_FILE_ONLY ON)
endfunction()

# stretto_project_files(LAYER FOLDER): compiles the files of FOLDER (each NAME.in) into LAYER, as the table
# that programs/stretto/project_files.h declares, so that the program needs no data files at run time.
function(stretto_project_files layer folder)
  file(GLOB templates CONFIGURE_DEPENDS ${folder}/*.in)
  set(rows "")
  foreach(template IN LISTS templates)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${template})
    get_filename_component(name ${template} NAME)
    string(REGEX REPLACE "\\.in$" "" name ${name})
    string(REGEX REPLACE "^dot_" "." name ${name})
    file(READ ${template} text)
    string(REPLACE "@VERSION@" "${PROJECT_VERSION}" text "${text}")
    string(APPEND rows "      {\"${name}\", R\"__file__(${text})__file__\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/project_files.cpp @ONLY CONTENT
"#include \"stretto/programs/stretto/project_files.h\"

namespace stretto::cli {

std::vector<ProjectFile> project_files() {
  return {
@rows@  };
}

}  // namespace stretto::cli
")
  stretto_layer_target(${layer} lib)
  target_sources(${lib} PRIVATE ${CMAKE_BINARY_DIR}/project_files.cpp)
endfunction()
