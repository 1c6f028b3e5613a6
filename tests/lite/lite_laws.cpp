#include <cstdio>
#include <iostream>

#include "laws.h"
#include <unistd.h>

#include "stretto/base/log.h"

// Lite on any number of ranks gives the results of a plain libtorch loop on one rank: each case runs both in
// the same process and throws if they differ.
//
//   lite_laws CASE RANKS [FOLDER]
namespace stretto {
namespace {

int run(int argc, char** argv) {
  Laws laws;
  for (Laws some : {accumulation_laws(), checkpoint_laws(), data_laws(), divided_laws(), job_laws(),
                    lbfgs_laws(), optimizer_laws(), precision_laws()})
    laws.merge(some);
  LiteOptions options;
  options.devices = std::stoi(argv[2]);
  laws.at(argv[1])(options, argc > 3 ? argv[3] : "");
  return 0;
}

}  // namespace
}  // namespace stretto

int main(int argc, char** argv) {
  int code = 1;
  try {
    code = stretto::run(argc, argv);
  } catch (const std::exception& error) {
    stretto::log::error("{}", error.what());
  }
  stretto::log::flush();
  std::cout.flush();
  std::fflush(nullptr);
  ::_exit(code);  // skips libtorch's global destructors, which take 0.25 s; the examples have them
}
