#include "stretto/parallel/data_parallel.h"

namespace stretto::parallel {

DataParallel::DataParallel(const Mesh& mesh, const Sharding& sharding)
    : all(mesh.group(Axes::sum)),
      shard(shards_optimizer(sharding) ? mesh.group(Axes::shard) : all),
      parts(mesh.group(Axis::tp)),
      stage(mesh.group(Axes::stage)),
      copies(mesh.group(Axis::dp_replicate | Axis::tp)) {
  if (shards_optimizer(sharding) && mesh.size(Axis::dp_replicate) > 1)
    replicas = &mesh.group(Axis::dp_replicate);
}

}  // namespace stretto::parallel
