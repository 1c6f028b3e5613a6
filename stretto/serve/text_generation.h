#pragma once

#include "stretto/serve/pipeline.h"

namespace stretto::serve {

PipelineType text_generation_pipeline();  // for the registry

}  // namespace stretto::serve
