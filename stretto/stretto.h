#pragma once

// All that a program needs which trains with stretto: link stretto_serve, include this.
//
//   Recipe               what a run is told (load_recipe, check_recipe)
//   TextClassification   the whole task of a recipe, from files to a model folder
//   Module, Trainer      a task of your own: write the steps, the Trainer has the loop
//   Lite                 many ranks for a program with a loop and modules of its own
//   nn, BertModel        layers and models on packed batches
//   TextClassifier       a trained model folder as a function
//
// tests/umbrella/own_module_test.cpp is a small program of the second kind.
#include "stretto/base/error.h"
#include "stretto/comm/group.h"
#include "stretto/comm/store.h"
#include "stretto/config/check_recipe.h"
#include "stretto/config/recipe.h"
#include "stretto/data/samples.h"
#include "stretto/data/text_dataset.h"
#include "stretto/models/bert/model.h"
#include "stretto/nn/functional.h"
#include "stretto/nn/layers.h"
#include "stretto/serve/text_classifier.h"
#include "stretto/tasks/text_classification.h"
#include "stretto/text/tokenizer.h"
#include "stretto/trainer/lite.h"
#include "stretto/trainer/trainer.h"
