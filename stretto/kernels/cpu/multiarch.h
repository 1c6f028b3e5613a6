#pragma once

// A function marked STRETTO_MULTIARCH is compiled for several x86 targets; the best one for the machine is
// selected when the program starts. Its body is plain C++ that the compiler vectorises. Sanitizers run before
// that selection, so they get the default version.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define STRETTO_MULTIARCH __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define STRETTO_MULTIARCH
#endif
