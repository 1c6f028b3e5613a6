# What `cmake --install` writes below the prefix. The layout is relocatable. The build folder has the same
# layout, except that headers are those of the sources, so that CMake finds either by the same
# stretto-config.cmake:
#   bin/stretto  libexec/stretto/stretto-rank  include/stretto/
#   lib/libstretto_*.a  lib/cmake/stretto/  lib/pkgconfig/
#   lib/stretto/libstretto_mpi.so  the back end mpi, if there was MPI
#   lib/stretto/libstretto_arrow.so  reads Parquet, if there was Arrow C++
#   lib/stretto/torch          the libtorch that stretto was built with: a symbolic link, or files in packages
#   lib/stretto/include_first  the system's fmt headers, found before the fmt headers that libtorch contains
include(CMakePackageConfigHelpers)
set(STRETTO_INSTALL_CMAKE lib/cmake/stretto)
define_property(GLOBAL PROPERTY STRETTO_INSTALLED_LAYERS BRIEF_DOCS "Layers, upper layers first" FULL_DOCS "In link order")

# stretto_install_layer(LIBRARY): the library of a layer. InstallHeaders.cmake installs the headers.
function(stretto_install_layer library)
  string(REGEX REPLACE "^stretto_" "" name ${library})
  set_target_properties(${library} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS ${library} EXPORT stretto ARCHIVE DESTINATION lib)
  get_property(layers GLOBAL PROPERTY STRETTO_INSTALLED_LAYERS)
  set_property(GLOBAL PROPERTY STRETTO_INSTALLED_LAYERS ${name} ${layers})
endfunction()

# To be called after the last layer: the target stretto::stretto, the CMake package, the pkg-config file.
function(stretto_install_package)
  get_property(layers GLOBAL PROPERTY STRETTO_INSTALLED_LAYERS)
  add_library(stretto_all INTERFACE)
  set_target_properties(stretto_all PROPERTIES EXPORT_NAME stretto)
  target_compile_features(stretto_all INTERFACE cxx_std_20)
  list(TRANSFORM layers PREPEND stretto_ OUTPUT_VARIABLE libraries)
  target_link_libraries(stretto_all INTERFACE ${libraries})
  set_target_properties(stretto_all PROPERTIES STRETTO_LAYERS "${libraries}")
  install(TARGETS stretto_all EXPORT stretto)
  install(EXPORT stretto NAMESPACE stretto:: FILE stretto-targets.cmake DESTINATION ${STRETTO_INSTALL_CMAKE})
  install(CODE "set(STRETTO_SOURCE \"${PROJECT_SOURCE_DIR}\")")
  install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/InstallHeaders.cmake)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/stretto)

  set(package ${CMAKE_BINARY_DIR}/${STRETTO_INSTALL_CMAKE})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/stretto-config.cmake.in ${package}/stretto-config.cmake @ONLY)
  write_basic_package_version_file(${package}/stretto-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${package}/stretto-config.cmake ${package}/stretto-config-version.cmake DESTINATION ${STRETTO_INSTALL_CMAKE})
  export(EXPORT stretto NAMESPACE stretto:: FILE ${package}/stretto-targets.cmake)
  file(REMOVE ${CMAKE_BINARY_DIR}/stretto-config.cmake)  # CMake would find a package in the build folder itself first
  set(private ${CMAKE_BINARY_DIR}/lib/stretto)
  file(MAKE_DIRECTORY ${private})
  file(REMOVE ${private}/torch ${private}/include_first)
  file(CREATE_LINK ${STRETTO_TORCH_ROOT} ${private}/torch SYMBOLIC)
  file(CREATE_LINK ${CMAKE_BINARY_DIR}/include_first ${private}/include_first SYMBOLIC)

  list(TRANSFORM layers PREPEND -lstretto_ OUTPUT_VARIABLE libraries)
  list(TRANSFORM STRETTO_TORCH_LIBRARIES PREPEND -l OUTPUT_VARIABLE torch_libraries)
  list(JOIN libraries " " STRETTO_LINK)
  list(JOIN torch_libraries " " STRETTO_TORCH_LINK)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/stretto.pc.in ${CMAKE_BINARY_DIR}/stretto.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/stretto.pc DESTINATION lib/pkgconfig)

  install(CODE "
    set(private \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/lib/stretto\")
    file(MAKE_DIRECTORY \"\${private}/include_first\")
    file(CREATE_LINK \"${STRETTO_TORCH_ROOT}\" \"\${private}/torch\" SYMBOLIC)
    file(CREATE_LINK \"${STRETTO_FMT_INCLUDE}/fmt\" \"\${private}/include_first/fmt\" SYMBOLIC)")
endfunction()
