#pragma once

#include "stretto/text/json_fields.h"
#include "stretto/text/tokenizer_parts.h"

namespace stretto::text {

// The sections of a tokenizer.json. Each function reads the section of its name from `file`, the whole file,
// and throws DataError, with the place, if it is malformed or its type is not available. `config` is
// tokenizer_config.json.
std::unique_ptr<Normalizer> read_normalizer(const JsonField& file, const JsonField& config,
                                            const TokenizerOptions& options);
std::unique_ptr<PreTokenizer> read_pre_tokenizer(const JsonField& file, const JsonField& config,
                                                 const TokenizerOptions& options);
std::unique_ptr<Model> read_model(const JsonField& file, const std::string& name);
PostProcessor read_post_processor(const JsonField& file, const JsonField& config,
                                  const TokenizerOptions& options);
Decoder read_decoder(const JsonField& file);

// Whether the pre-tokenizer is that of a vocabulary that spells bytes (byte_level.h).
bool splits_bytes(const JsonField& file);

// Whether a space is inserted before byte-level texts: `here`, the value in a file, unless the configuration
// or the options override it.
bool choose_prefix_space(bool here, const JsonField& config, const TokenizerOptions& options);

// The kind of a model: "WordPiece", "BPE", ...
std::string model_type(const JsonField& model);

}  // namespace stretto::text
