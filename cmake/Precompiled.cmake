# Precompiled headers: one for each kind of target, built once and reused by all targets of that kind. A
# header belongs here if most sources of the kind include it and it takes long to parse.
#   stretto_pch             product, layers without libtorch
#   stretto_torch_pch       product, layers that use libtorch
#   stretto_test_pch        tests of layers without libtorch
#   stretto_torch_test_pch  tests, and examples, that use libtorch
# -O0 takes a third off the time that GCC spends on tests with libtorch; GCC rejects a header that was
# precompiled at -O0 at other levels, so that kind has one level.
set(STRETTO_TORCH_TEST_FLAGS -O0)

file(WRITE ${CMAKE_BINARY_DIR}/pch.cpp "")
# stretto_precompiled_header(NAME HEADERS header... [LIBS target...] [FLAGS flag...])
function(stretto_precompiled_header name)
  cmake_parse_arguments(ARG "" "" "HEADERS;LIBS;FLAGS" ${ARGN})
  add_library(${name} STATIC EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/pch.cpp)
  target_link_libraries(${name} PRIVATE stretto_options fmt::fmt ${ARG_LIBS})
  target_precompile_headers(${name} PRIVATE <filesystem> <functional> <nlohmann/json.hpp> <fmt/format.h> ${ARG_HEADERS})
  target_compile_options(${name} PRIVATE -fPIC -fpch-preprocess -Winvalid-pch ${ARG_FLAGS})
endfunction()

set(test_headers <gmock/gmock.h> <gtest/gtest.h>)
stretto_precompiled_header(stretto_pch)
if(STRETTO_TESTS)
  stretto_precompiled_header(stretto_test_pch HEADERS ${test_headers} LIBS GTest::gmock)
endif()
if(EXISTS ${STRETTO_TORCH_ROOT}/lib/libtorch_cpu.so)
  set(torch_headers <ATen/ATen.h> <torch/csrc/autograd/custom_function.h>)
  stretto_precompiled_header(stretto_torch_pch HEADERS ${torch_headers} LIBS stretto_torch)
  if(STRETTO_TESTS)
    stretto_precompiled_header(stretto_torch_test_pch HEADERS ${torch_headers} <torch/nn.h> <torch/optim.h> <torch/data.h>
      ${test_headers} LIBS stretto_torch GTest::gmock FLAGS ${STRETTO_TORCH_TEST_FLAGS})
  endif()
endif()

# stretto_precompile(TARGET KIND): compiles TARGET with the precompiled header KIND, if there is one, and
# links its libtorch.
function(stretto_precompile target kind)
  if(TARGET ${kind})
    target_precompile_headers(${target} REUSE_FROM ${kind})
    target_compile_options(${target} PRIVATE -fPIC -fpch-preprocess -Winvalid-pch)
  endif()
  if(kind STREQUAL "stretto_torch_test_pch")
    target_compile_options(${target} PRIVATE ${STRETTO_TORCH_TEST_FLAGS})
    # Macros must be as they were when the header was precompiled, also in programs that use neither of these
    # libraries.
    target_compile_definitions(${target} PRIVATE GTEST_HAS_PTHREAD=1 $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
  endif()
  if(kind MATCHES "torch")
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:$<TARGET_NAME_IF_EXISTS:stretto_torch>>)
  endif()
endfunction()
