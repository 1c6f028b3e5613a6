# Precompiled headers: one for each kind of target, built once and reused by all targets of that kind. A
# header belongs here if most sources of the kind include it and it takes long to parse.
#   stretto_pch             product, layers without libtorch
#   stretto_torch_pch       product, layers that use libtorch
#   stretto_test_pch        tests of layers without libtorch
#   stretto_torch_test_pch  tests, and examples, that use libtorch
# GCC instantiates the templates that a precompiled header mentions again in each source: with torch/nn.h 10 s
# instead of 5, so that the tests' header has nn/module.h only, and sources include the modules that they use.
# GCC rejects a header that was precompiled at -O0 at other levels: the kinds of tests have STRETTO_TEST_FLAGS,
# a test that computes takes the product's kind (stretto_precompile_test), and if STRETTO_LIGHT_FLAGS are -O0,
# LIGHT layers take stretto_light_pch or stretto_torch_light_pch.

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
if(STRETTO_LIGHT_FLAGS STREQUAL "-O0")
  stretto_precompiled_header(stretto_light_pch FLAGS -O0)
endif()
if(STRETTO_TESTS)
  stretto_precompiled_header(stretto_test_pch HEADERS ${test_headers} LIBS GTest::gmock FLAGS ${STRETTO_TEST_FLAGS})
endif()
if(STRETTO_LINKS)
  set(torch_headers <ATen/ATen.h> <torch/csrc/autograd/custom_function.h>)
  stretto_precompiled_header(stretto_torch_pch HEADERS ${torch_headers} LIBS stretto_torch)
  if(TARGET stretto_light_pch)
    stretto_precompiled_header(stretto_torch_light_pch HEADERS ${torch_headers} LIBS stretto_torch FLAGS -O0)
  endif()
  if(STRETTO_TESTS)
    stretto_precompiled_header(stretto_torch_test_pch HEADERS <ATen/ATen.h> <torch/nn/module.h> ${test_headers}
      LIBS stretto_torch GTest::gmock FLAGS ${STRETTO_TEST_FLAGS})
  endif()
endif()

# stretto_precompile(TARGET KIND): compiles TARGET with the precompiled header KIND, if there is one, and
# links its libtorch. A program links what it links before this call.
function(stretto_precompile target kind)
  stretto_link_layers_first(${target})
  if(TARGET ${kind})
    target_precompile_headers(${target} REUSE_FROM ${kind})
    target_compile_options(${target} PRIVATE -fPIC -fpch-preprocess -Winvalid-pch)
  endif()
  if(kind MATCHES "test_pch")
    target_compile_options(${target} PRIVATE ${STRETTO_TEST_FLAGS})
  endif()
  # Macros must be as they were when the header was precompiled, also in programs that use neither of these
  # libraries.
  if(kind STREQUAL "stretto_torch_test_pch")
    target_compile_definitions(${target} PRIVATE GTEST_HAS_PTHREAD=1)
  endif()
  if(kind MATCHES "torch")
    target_compile_definitions(${target} PRIVATE $<TARGET_PROPERTY:fmt::fmt,INTERFACE_COMPILE_DEFINITIONS>)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:$<TARGET_NAME_IF_EXISTS:stretto_torch>>)
  endif()
endfunction()

# stretto_precompile_test(TARGET COMPUTES): a test without libtorch; at -O1 if it computes.
function(stretto_precompile_test target computes)
  if(computes)
    target_compile_options(${target} PRIVATE -O1)
    stretto_precompile(${target} stretto_pch)
  else()
    stretto_precompile(${target} stretto_test_pch)
  endif()
endfunction()
