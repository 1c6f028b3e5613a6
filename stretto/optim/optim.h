#pragma once

// Every optimizer and schedule.
#include "stretto/optim/adamw.h"
#include "stretto/optim/schedules/constant.h"
#include "stretto/optim/schedules/linear_with_warmup.h"
#include "stretto/optim/sgd.h"
