#include "tests/train/thread_workspace.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "stretto/base/strings.h"

namespace stretto {
namespace {

using ::testing::HasSubstr;

// Writes the sentences of make_rows, with a tag for each word.
std::string make_tagged(int count, uint64_t seed) {
  std::string text;
  const std::string rows = make_rows(count, seed);
  for (const std::string_view row : split(rows, '\n')) {
    for (const std::string_view word : split(row.substr(0, row.find('\t')), ' ')) {
      if (!word.empty()) text += fmt::format("{} {}\n", word, word.size() > 4 ? "B-LONG" : "O");
    }
    text += '\n';
  }
  return text;
}

// Tests ranks that share memory, ranks that do not, where each rank caches other states, and bf16, whose
// matmuls round differently with their sizes.
TEST(TrainLaws, CachedStatesOfAFrozenTransformerChangeNoBit) {
  const ThreadWorkspace workspace;
  workspace.train("encoder", 1, "training.max_steps=1");
  workspace.write("train.conll", make_tagged(40, 1));
  workspace.write("dev.conll", make_tagged(9, 2));
  const std::string settings = fmt::format(
      "task=token-classification model.config=null model.type=sequence-tagger tokenizer.path=null "
      "data.train={0}train.conll data.validation={0}dev.conll training.precision=fp32 resume=false "
      "sequence_tagger.transformer={0}encoder/model sequence_tagger.fine_tune=false "
      "sequence_tagger.hidden_size=12 ",
      workspace.path());
  for (const auto& [ranks, own] : {std::pair(1, ""),
                                   {2, ""},
                                   {2, "training.strategy=fsdp"},
                                   {2, "training.strategy=fsdp training.backend=tcp"},
                                   {2, "training.precision=bf16 sequence_tagger.subtoken_pooling=mean"}}) {
    SCOPED_TRACE(fmt::format("{} ranks {}", ranks, own));
    const auto train = [&](const std::string& mode) {
      return workspace.train(mode, ranks,
                             settings + own + " token_classification.embeddings_storage_mode=" + mode);
    };
    train("none");
    EXPECT_THAT(train("cpu"), HasSubstr("states     of the frozen transformer are kept, at most"));
    EXPECT_EQ(workspace.losses("cpu"), workspace.losses("none"));
    EXPECT_TRUE(workspace.read("cpu/model/model.safetensors") ==
                workspace.read("none/model/model.safetensors"));
  }
}

}  // namespace
}  // namespace stretto
