#pragma once

// All that a program needs which trains with stretto: link stretto::stretto, include this.
//
//   Recipe               what a run is told (load_recipe, check_recipe)
//   TextClassification   the whole task of a recipe, from files to a model folder
//   Module, Trainer      a task of your own: write the steps, the Trainer has the loop
//   Lite                 many ranks for a program with a loop and modules of its own
//   run_program          the main() of a program with such a task: recipe, ranks, logs
//   nn, BertModel        layers and models on packed batches
//   TextClassifier       a trained model folder as a function
//
// `stretto new NAME` writes a small program of the second kind, with what builds and runs it.
#include "stretto/base/error.h"
#include "stretto/comm/group.h"
#include "stretto/comm/store.h"
#include "stretto/config/check_recipe.h"
#include "stretto/config/recipe.h"
#include "stretto/data/samples.h"
#include "stretto/data/text_dataset.h"
#include "stretto/lite/lite.h"
#include "stretto/models/bert/model.h"
#include "stretto/nn/functional.h"
#include "stretto/nn/layers.h"
#include "stretto/rank/program.h"
#include "stretto/serve/text_classifier.h"
#include "stretto/tasks/text_classification.h"
#include "stretto/text/tokenizer.h"
#include "stretto/trainer/trainer.h"
