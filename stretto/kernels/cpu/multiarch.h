#pragma once

// A function marked STRETTO_MULTIARCH is compiled for several generations of x86 processors, and the one that fits the
// machine is chosen when the program starts. Its body is plain C++ that the compiler vectorises. Sanitizers run before
// that choice is made and get the plain version.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define STRETTO_MULTIARCH __attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#else
#define STRETTO_MULTIARCH
#endif
