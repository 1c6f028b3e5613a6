#pragma once

// Every optimizer and schedule.
#include "stretto/optim/optimizers.h"
#include "stretto/optim_config/schedules.h"
