# libtorch as imported targets of our own. find_package(Torch) would add warnings, unrelated link directories
# and a RUNPATH into other software; a folder with include/ and lib/ is enough.
# Search order: STRETTO_TORCH, CMAKE_PREFIX_PATH, the private venv that scripts/setup.sh makes.
set(STRETTO_TORCH "" CACHE PATH "A libtorch folder (with include/ and lib/)")
if(NOT STRETTO_TORCH)
  set(STRETTO_TORCH "$ENV{STRETTO_TORCH}")
endif()
string(REPLACE ":" ";" env_prefixes "$ENV{CMAKE_PREFIX_PATH}")
set(torch_candidates ${STRETTO_TORCH} ${CMAKE_PREFIX_PATH} ${env_prefixes})
if(NOT STRETTO_TORCH)
  set(deps "$ENV{STRETTO_DEPS}")
  if(NOT deps)
    set(deps ${PROJECT_SOURCE_DIR}/.deps)
  endif()
  file(GLOB venv_torch ${deps}/venv/lib/python3.*/site-packages/torch)
  list(APPEND torch_candidates ${venv_torch})
endif()

unset(STRETTO_TORCH_INCLUDE CACHE)  # searched again each time, as STRETTO_TORCH may have changed
find_path(STRETTO_TORCH_INCLUDE ATen/ATen.h PATHS ${torch_candidates} PATH_SUFFIXES include ../../include
  NO_DEFAULT_PATH)
if(NOT STRETTO_TORCH_INCLUDE)
  message(FATAL_ERROR "stretto: no libtorch found. Run `make setup`, which installs a private one, or set STRETTO_TORCH to "
    "a libtorch folder, for example: cmake -DSTRETTO_TORCH=$(python3 -c 'import torch, os; print(os.path.dirname(torch.__file__))')")
endif()
get_filename_component(STRETTO_TORCH_ROOT ${STRETTO_TORCH_INCLUDE}/.. ABSOLUTE)
set(torch_lib ${STRETTO_TORCH_ROOT}/lib)
# Without libraries, only headers, sources can be compiled but no program linked (make check-torch-2.11).
set(STRETTO_LINKS OFF)
if(EXISTS ${torch_lib}/libtorch_cpu.so)
  set(STRETTO_LINKS ON)
endif()

file(READ ${STRETTO_TORCH_INCLUDE}/torch/headeronly/version.h torch_version_text)
set(STRETTO_TORCH_VERSION "")
foreach(part MAJOR MINOR PATCH)
  string(REGEX MATCH "TORCH_VERSION_${part} ([0-9]+)" unused "${torch_version_text}")
  list(APPEND STRETTO_TORCH_VERSION ${CMAKE_MATCH_1})
endforeach()
list(JOIN STRETTO_TORCH_VERSION "." STRETTO_TORCH_VERSION)
message(STATUS "stretto: libtorch ${STRETTO_TORCH_VERSION} in ${STRETTO_TORCH_ROOT}")

foreach(name c10 torch_cpu)
  add_library(stretto_lib${name} SHARED IMPORTED GLOBAL)
  set_target_properties(stretto_lib${name} PROPERTIES IMPORTED_LOCATION ${torch_lib}/lib${name}.so)
endforeach()
add_library(stretto_torch INTERFACE)
target_include_directories(stretto_torch SYSTEM INTERFACE
  ${STRETTO_TORCH_INCLUDE} ${STRETTO_TORCH_INCLUDE}/torch/csrc/api/include)
target_compile_definitions(stretto_torch INTERFACE USE_DISTRIBUTED)
# libtorch contains headers of another version of fmt than the one we link: ours must be found first.
get_target_property(fmt_include fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
list(GET fmt_include 0 STRETTO_FMT_INCLUDE)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/include_first)
file(CREATE_LINK ${STRETTO_FMT_INCLUDE}/fmt ${CMAKE_BINARY_DIR}/include_first/fmt SYMBOLIC)
target_include_directories(stretto_torch INTERFACE ${CMAKE_BINARY_DIR}/include_first)
target_link_libraries(stretto_torch INTERFACE
  -Wl,--no-as-needed stretto_libtorch_cpu stretto_libc10 -Wl,--as-needed)

# The CUDA parts are built if libtorch was built with CUDA and CUDA's headers are found, next to libtorch as
# pip installs them or in the CUDA toolkit's folder; otherwise the no_*.cpp files are.
set(STRETTO_CUDA OFF)
set(STRETTO_TORCH_LIBRARIES torch_cpu c10)
set(nvidia ${STRETTO_TORCH_ROOT}/../nvidia)
unset(STRETTO_CUDA_INCLUDE CACHE)
find_path(STRETTO_CUDA_INCLUDE cuda_runtime_api.h HINTS ${CUDAToolkit_ROOT}/include ${nvidia}/cu13/include
  /usr/local/cuda/include)
unset(STRETTO_NCCL_INCLUDE CACHE)
find_path(STRETTO_NCCL_INCLUDE nccl.h HINTS ${nvidia}/nccl/include)
if(EXISTS ${STRETTO_TORCH_INCLUDE}/c10/cuda/impl/cuda_cmake_macros.h AND STRETTO_CUDA_INCLUDE AND STRETTO_NCCL_INCLUDE)
  set(STRETTO_CUDA ON)
  list(APPEND STRETTO_TORCH_LIBRARIES torch_cuda c10_cuda)
  foreach(name c10_cuda torch_cuda)
    add_library(stretto_lib${name} SHARED IMPORTED GLOBAL)
    set_target_properties(stretto_lib${name} PROPERTIES IMPORTED_LOCATION ${torch_lib}/lib${name}.so)
  endforeach()
  target_include_directories(stretto_torch SYSTEM INTERFACE
    ${STRETTO_CUDA_INCLUDE} ${STRETTO_CUDA_INCLUDE}/cccl ${STRETTO_NCCL_INCLUDE})
  target_link_libraries(stretto_torch INTERFACE
    -Wl,--no-as-needed stretto_libtorch_cuda stretto_libc10_cuda -Wl,--as-needed)
endif()
message(STATUS "stretto: CUDA parts ${STRETTO_CUDA}")
