#pragma once

// The public headers of stretto. Link stretto::stretto and include this.
//
//   Recipe               the settings of a run (load_recipe, check_recipe)
//   Task                 a recipe's `task`: trains and evaluates a model folder (register_task, make_task);
//                        FineTuning is the program of tasks that fine-tune a model with a head
//   Module, Trainer      your own training step; the Trainer runs the loop; callbacks, metrics
//   Lite                 distributed training for a program with its own loop and modules
//   run_program          implements main() of a program with a Module: recipe, ranks, logs
//   nn, models           layers and models on packed batches (nn::sharded, bundled_models)
//   Pipeline             inference with a trained model folder (load_pipeline)
//   TextGenerator        continues texts with a language model (load_text_generator)
//
// `stretto new NAME` creates a small program with a Module, and the files that build and run it. Headers that
// are included by those below but not listed are installed too, but may change at any time. Not included are
// headers that few programs need:
//
//   data/block_dataset.h, token_corpus/blocks.h    blocks of a corpus of tokens as training samples
//   data/curriculum.h                              datasets that follow each other
//   generate/generator.h                           continues token ids instead of texts, with any model
//   model_config/heads.h, models/bert/model.h      names of heads; one model (BertModel)
//   optim/parts.h, optim/parameter_piece.h         what optimizers are made from
//   settings/yaml.h                                a struct's fields() from a YAML or JSON file
//   strategy/batch_plan.h                          how the samples of a step are divided (Mesh::batch_plan)
#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/log.h"
#include "stretto/comm/group.h"
#include "stretto/comm/mesh.h"
#include "stretto/config/recipe.h"
#include "stretto/data/collators.h"
#include "stretto/data/dataset.h"
#include "stretto/data/packing.h"
#include "stretto/data/samples.h"
#include "stretto/data/stratified_split.h"
#include "stretto/data/subset.h"
#include "stretto/generate/text_generator.h"
#include "stretto/lite/lite.h"
#include "stretto/metrics/classification.h"
#include "stretto/model_config/config_json.h"
#include "stretto/models/registry.h"
#include "stretto/nn/functional.h"
#include "stretto/nn/initial_values.h"
#include "stretto/nn/layers.h"
#include "stretto/nn/sharded.h"
#include "stretto/nn/tensor_parallel.h"
#include "stretto/optim/optimizers.h"
#include "stretto/optim/registry.h"
#include "stretto/optim_config/schedule_registry.h"
#include "stretto/optim_config/schedules.h"
#include "stretto/programs/stretto_rank/program.h"
#include "stretto/serve/pipeline.h"
#include "stretto/strategy/sharding.h"
#include "stretto/tasks/fine_tuning.h"
#include "stretto/tasks/task.h"
#include "stretto/tensor/safetensors.h"
#include "stretto/tensor/tensor_source.h"
#include "stretto/text/tokenizer.h"
#include "stretto/track/registry.h"
#include "stretto/trainer/api/callback.h"
#include "stretto/trainer/api/data_module.h"
#include "stretto/trainer/api/manual_optimization.h"
#include "stretto/trainer/api/module.h"
#include "stretto/trainer/api/standard_metrics.h"
#include "stretto/trainer/api/trainer.h"
