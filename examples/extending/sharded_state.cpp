// A strategy that stretto does not have under this name: the state of the optimizer is sharded, gradients and
// parameters are not. A strategy is a row of a table that the engine reads.
#include <stretto/stretto.h>

void add_sharded_state() {
  stretto::register_sharding(
      {.name = "sharded_state", .optimizer = stretto::Held::sharded, .help = "the optimizer's state"});
}
