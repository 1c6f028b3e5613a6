#pragma once

// Every optimizer and schedule.
#include "stretto/optim/optimizers.h"
#include "stretto/optim_config/schedules/constant.h"
#include "stretto/optim_config/schedules/constant_with_warmup.h"
#include "stretto/optim_config/schedules/cosine_annealing_lr.h"
#include "stretto/optim_config/schedules/cosine_annealing_warm_restarts.h"
#include "stretto/optim_config/schedules/cosine_with_hard_restarts.h"
#include "stretto/optim_config/schedules/cosine_with_warmup.h"
#include "stretto/optim_config/schedules/cyclic_lr.h"
#include "stretto/optim_config/schedules/exponential_lr.h"
#include "stretto/optim_config/schedules/inverse_sqrt.h"
#include "stretto/optim_config/schedules/linear_lr.h"
#include "stretto/optim_config/schedules/linear_with_warmup.h"
#include "stretto/optim_config/schedules/one_cycle_lr.h"
#include "stretto/optim_config/schedules/plateau.h"
#include "stretto/optim_config/schedules/polynomial_decay.h"
#include "stretto/optim_config/schedules/step_lr.h"
