#pragma once

#include "stretto/base/option_names.h"

namespace stretto {

// The recipe's keys for the options of readers (corpus/tagged.h, data/reader.h) and of datasets.
inline const OptionNames data_names = {{"columns.text", "data.text"},
                                       {"columns.text_pair", "data.text_pair"},
                                       {"columns.label", "data.label"},
                                       {"encoding", "data.encoding"},
                                       {"max_length", "data.max_length"}};

}  // namespace stretto
