#include "stretto/token_corpus/corpus.h"

#include <cmath>
#include <fstream>
#include <ranges>

#include "stretto/base/error.h"
#include "stretto/base/message_support.h"
#include "stretto/base/strings.h"
#include "stretto/token_corpus/blocks.h"
#include "stretto/token_corpus/corpus_fixture.h"
#include "stretto/token_corpus/growing_file.h"
#include "stretto/token_corpus/mixture.h"

namespace stretto::token_corpus {
namespace {

using testing::ElementsAre;

class Corpora : public CorpusTest {
 protected:
  // Writes a corpus whose documents have these numbers of tokens; the tokens are 0, 1, 2, ... across
  // documents, in shards of `per_shard`.
  std::shared_ptr<const Corpus> numbered(const std::string& name, const std::vector<int64_t>& lengths,
                                         int64_t per_shard = 1000, int64_t vocabulary = 50'000) const {
    make_folders(path(name));
    Manifest manifest;
    manifest.tokenizer = identity_of(roberta());
    manifest.tokenizer.vocab_size = vocabulary;
    manifest.settings.tokens_per_shard = per_shard;
    manifest.documents = std::ssize(lengths);
    std::string index, tokens;
    for (const int64_t length : lengths) {
      for (int64_t i = 0; i < length; ++i) append<uint16_t>(static_cast<uint16_t>(manifest.tokens++), tokens);
      append<int64_t>(manifest.tokens, index);
    }
    for (size_t shard = 0; shard * per_shard * 2 < tokens.size(); ++shard)
      manifest.shards.push_back(
          checked(fs::path(name) / shard_name(shard), tokens.substr(shard * per_shard * 2, per_shard * 2)));
    manifest.index = checked(fs::path(name) / documents_name, index);
    manifest.next.reset();
    write_manifest(manifest, path(name));
    return std::make_shared<const Corpus>(path(name));
  }

  template <class Value>
  static void append(Value value, std::string& bytes) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  CheckedFile checked(const std::string& name, const std::string& bytes) const {
    write(name, bytes);
    StreamHash hash;
    hash.add(bytes);
    return {std::ssize(bytes), checksum_text(hash.value())};
  }

  static std::vector<int64_t> random_lengths(uint32_t seed, size_t documents, int64_t most) {
    std::mt19937 random(seed);
    std::vector<int64_t> lengths;
    while (lengths.size() < documents) lengths.push_back(1 + random() % (random() % 10 == 0 ? most : 10));
    return lengths;
  }
};

TEST_F(Corpora, AreReadAtAnyPosition) {
  for (const int64_t per_shard : {7, 100, 100'000}) {
    const auto corpus = numbered("corpus" + std::to_string(per_shard), {3, 1, 400, 20, 76}, per_shard);
    ASSERT_EQ(corpus->tokens(), 500);
    for (int64_t begin = 0; begin <= 500; begin += 13) {
      for (int64_t end = begin; end <= 500; end += 31) {
        std::vector<int32_t> ids;
        corpus->read(begin, end, ids);
        ASSERT_EQ(std::ssize(ids), end - begin);
        for (size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], begin + static_cast<int64_t>(i));
      }
    }
    EXPECT_EQ(corpus->document_at(0), 0);
    EXPECT_EQ(corpus->document_at(2), 0);
    EXPECT_EQ(corpus->document_at(3), 1);
    EXPECT_EQ(corpus->document_at(4), 2);
    EXPECT_EQ(corpus->document_at(499), 4);
    EXPECT_EQ(corpus->document_begin(5), 500);
  }
}

TEST_F(Corpora, AnotherTokenizerIsRefused) {
  const auto corpus = numbered("corpus", {3});
  EXPECT_NO_THROW(corpus->require_tokenizer(roberta(), "model"));
  const auto other = text::Tokenizer::load(golden("unigram"));
  EXPECT_THAT(message_of<ConfigError>([&] { corpus->require_tokenizer(other, "other_model"); }),
              has_all("corpus", "RobertaTokenizer", "other_model"));
}

TEST_F(Corpora, TruncatedDamagedOrUnfinishedOnesAreRefused) {
  const auto refused = [&](const std::function<void(Manifest&)>& change, const auto& message) {
    numbered("corpus", {1500, 20});
    Manifest manifest = read_manifest(path("corpus"));
    change(manifest);
    write_manifest(manifest, path("corpus"));
    EXPECT_THAT(message_of<DataError>([&] { Corpus corpus(path("corpus")); }), message);
  };
  refused([](Manifest& manifest) { manifest.next.emplace(); }, has_all("not complete", "data tokenize"));
  refused([](Manifest& manifest) { manifest.tokens = 1519; }, has_all("corpus.json", "counts"));
  refused([](Manifest& manifest) { manifest.documents = 3; }, has_all("corpus.json", "counts"));
  refused([](Manifest& manifest) { manifest.shards.pop_back(); }, has_all("corpus.json", "counts"));
  refused([&](Manifest&) { fs::resize_file(path("corpus/tokens-00001.bin"), 1030); },
          has_all("tokens-00001.bin", "1030", "1040"));
  refused([&](Manifest&) { write("corpus/documents.bin", std::string(16, '\1')); },
          has_all("documents.bin", "damaged"));
  EXPECT_THAT(message_of<DataError>([&] { Corpus corpus(path("none")); }), has_all("none", "corpus.json"));
  numbered("corpus", {1500, 20});
  fs::remove(path("corpus/tokens-00001.bin"));
  EXPECT_THROW(Corpus(path("corpus")), IoError);
  for (const char* json : {"{}", "[]", "{\"format\": \"stretto token corpus 1\"}", "{"}) {
    write("corpus/corpus.json", json);
    EXPECT_THAT(message_of<DataError>([&] { Corpus corpus(path("corpus")); }), has_all("corpus.json"))
        << json;
  }
}

TEST_F(Corpora, CheckFindsEveryFlippedBit) {
  numbered("corpus", {1500, 20});
  EXPECT_NO_THROW(Corpus(path("corpus")).check({}));
  for (const char* name : {"tokens-00000.bin", "tokens-00001.bin", "documents.bin"}) {
    const std::string bytes = read_file(path("corpus") / name);
    std::string damaged = bytes;
    damaged[bytes.size() / 2 - 1] ^= 1;
    write(std::string("corpus/") + name, damaged);
    EXPECT_THAT(message_of<DataError>([&] { Corpus(path("corpus")).check({}); }), has_all(name, "checksum"));
    write(std::string("corpus/") + name, bytes);
  }
}

TEST_F(Corpora, IdsBeyondTheVocabularyAreRefused) {
  const auto corpus = numbered("corpus", {100}, 1000, /*vocabulary=*/60);
  std::vector<int32_t> ids;
  EXPECT_NO_THROW(corpus->read(0, 60, ids));
  EXPECT_THAT(message_of<DataError>([&] { corpus->read(30, 61, ids); }), has_all("tokens-00000.bin", "60"));
}

// ---- blocks

TEST_F(Corpora, BlocksAreTheTokensInOrderWithTheBeginningsOfDocuments) {
  for (const uint32_t seed : {1, 2, 3}) {
    const auto lengths = random_lengths(seed, 300, 200);
    const auto corpus = numbered("corpus" + std::to_string(seed), lengths, 97);
    for (const int32_t block_size : {2, 16, 100, 100'000}) {
      const CorpusBlocks blocks(corpus, {.block_size = block_size});
      std::vector<int64_t> starts;
      int64_t next = 0;
      for (int64_t i = 0; i < blocks.size(); ++i) {
        const Block block = blocks.read(i);
        ASSERT_EQ(std::ssize(block.ids), blocks.length(i));
        ASSERT_TRUE(std::ssize(block.ids) == block_size || i + 1 == blocks.size());
        ASSERT_EQ(block.starts.front(), 0);
        for (const int32_t start : block.starts) starts.push_back(next + start);
        for (const int32_t id : block.ids) ASSERT_EQ(id, next++);
      }
      EXPECT_EQ(next, corpus->tokens());
      EXPECT_EQ(blocks.tokens(), corpus->tokens());
      std::set<int64_t> expected;
      for (int64_t i = 0; i < corpus->documents(); ++i) expected.insert(corpus->document_begin(i));
      for (int64_t i = 0; i < blocks.size(); ++i) expected.insert(i * block_size);
      EXPECT_TRUE(std::ranges::equal(starts, expected));
    }
  }
}

TEST_F(Corpora, OneSequencePerBlockAndWholeBlocksAreOptions) {
  const auto corpus = numbered("corpus", {3, 4, 3});
  const CorpusBlocks joined(corpus, {.block_size = 4, .separate_documents = false});
  EXPECT_EQ(joined.size(), 3);
  EXPECT_THAT(joined.read(0).starts, ElementsAre(0));
  EXPECT_THAT(joined.read(2).ids, ElementsAre(8, 9));
  const CorpusBlocks whole(corpus, {.block_size = 4, .drop_last = true});
  EXPECT_EQ(whole.size(), 2);
  EXPECT_EQ(whole.tokens(), 8);
  EXPECT_THAT(message_of<ConfigError>([&] { CorpusBlocks(corpus, {.block_size = 11, .drop_last = true}); }),
              has_all("corpus", "10", "11"));
  EXPECT_THROW(CorpusBlocks(corpus, {.block_size = 1}), ConfigError);
}

// Like run_clm's group_texts under Dataset.map: 1,000 examples are joined, and the remainder of a block is
// dropped.
TEST_F(Corpora, RunClmsBlocksAreCutFromEachThousandDocuments) {
  const auto lengths = random_lengths(5, 3210, 40);
  const auto corpus = numbered("corpus", lengths);
  for (const int32_t block_size : {8, 100, 5000}) {
    std::vector<std::vector<int32_t>> expected;
    for (size_t first = 0; first < lengths.size(); first += 1000) {
      std::vector<int32_t> joined;
      const int64_t end = std::min<int64_t>(corpus->documents(), static_cast<int64_t>(first) + 1000);
      corpus->read(corpus->document_begin(static_cast<int64_t>(first)), corpus->document_begin(end), joined);
      for (size_t begin = 0; begin + block_size <= joined.size(); begin += block_size)
        expected.emplace_back(joined.begin() + static_cast<ptrdiff_t>(begin),
                              joined.begin() + static_cast<ptrdiff_t>(begin) + block_size);
    }
    const CorpusBlocks blocks(corpus, run_clm_blocks(block_size));
    ASSERT_EQ(blocks.size(), std::ssize(expected));
    for (int64_t i = 0; i < blocks.size(); ++i)
      ASSERT_EQ(blocks.read(i).ids, expected[static_cast<size_t>(i)]);
  }
}

TEST_F(Corpora, FingerprintsDependOnContentsAndOptions) {
  const auto one = numbered("one", {3, 4}), same = numbered("same", {3, 4}),
             other = numbered("other", {4, 3});
  EXPECT_EQ(one->fingerprint(), same->fingerprint());
  EXPECT_NE(one->fingerprint(), other->fingerprint());
  EXPECT_NE(CorpusBlocks(one, {.block_size = 3}).fingerprint(),
            CorpusBlocks(one, {.block_size = 4}).fingerprint());
}

// ---- mixtures

TEST_F(Corpora, AMixtureHasItsProportionsInEveryRange) {
  const std::vector<double> weights = {0.7, 0.2, 0.06, 0.04};
  std::vector<WeightedBlocks> parts;
  const std::vector<int64_t> sizes = {100, 900, 31, 500};
  for (size_t i = 0; i < sizes.size(); ++i) {
    const auto corpus = numbered("part" + std::to_string(i), {sizes[i] * 4 - 1});
    parts.push_back(
        {std::make_shared<const CorpusBlocks>(corpus, BlockOptions{.block_size = 4}), weights[i]});
  }
  const Mixture mixture(parts);
  EXPECT_EQ(mixture.size(), 12'500);  // the last part's 500 blocks are 4 % of the mixture
  std::vector<int64_t> seen(sizes.size());
  std::vector<std::map<int64_t, int>> uses(sizes.size());
  int64_t tokens = 0;
  for (int64_t i = 0; i < mixture.size(); ++i) {
    const auto [part, block] = mixture.source(i);
    ++seen[part];
    ++uses[part][block];
    tokens += mixture.length(i);
    for (size_t k = 0; k < sizes.size(); ++k)
      ASSERT_NEAR(static_cast<double>(seen[k]), static_cast<double>(i + 1) * weights[k], 2) << i << ' ' << k;
    if (i % 500 == 0) {
      ASSERT_EQ(mixture.read(i).ids, parts[part].blocks->read(block).ids);
    }
  }
  EXPECT_EQ(mixture.tokens(), tokens);
  for (size_t k = 0; k < sizes.size(); ++k) {
    EXPECT_EQ(seen[k], mixture.count(k));
    EXPECT_EQ(std::ssize(uses[k]), sizes[k]);
    const auto [least, most] = std::ranges::minmax(uses[k] | std::views::values);
    EXPECT_LE(most - least, 1) << k;
  }
}

TEST_F(Corpora, ImpossibleMixturesAreRefused) {
  const auto blocks = [&](const std::string& name, int32_t size) {
    return std::make_shared<const CorpusBlocks>(numbered(name, {100}), BlockOptions{.block_size = size});
  };
  EXPECT_THROW(Mixture({}), ConfigError);
  for (const double weight : std::vector<double>{0, -1, NAN, INFINITY})
    EXPECT_THROW(Mixture({{blocks("a", 4), weight}}), ConfigError) << weight;
  EXPECT_THAT(message_of<ConfigError>([&] {
                Mixture({{blocks("a", 4)}, {blocks("b", 5)}});
              }),
              has_all("4", "5"));
  EXPECT_THROW(Mixture({{blocks("a", 4), 1e-300}, {blocks("b", 4), 1}}), ConfigError);
}

// ---- memory

int64_t kilobytes(const char* name) {
  const std::string status = read_file("/proc/self/status");
  for (const std::string_view line : split(status, '\n')) {
    if (line.starts_with(name)) return std::stoll(std::string(line.substr(line.find(':') + 1)));
  }
  ADD_FAILURE() << name;
  return 0;
}

// 100 GB of tokens in sparse files: memory use depends only on the pages that are read.
TEST_F(Corpora, AHundredGigabytesTakeOnlyThePagesThatAreRead) {
  Manifest manifest;
  manifest.tokenizer = identity_of(roberta());
  manifest.settings.tokens_per_shard = int64_t{1} << 28;
  manifest.tokens = int64_t{50} * 1'000'000'000;
  manifest.documents = 4'000'000;
  manifest.next.reset();
  make_folders(path("huge"));
  for (int64_t left = manifest.tokens; left > 0; left -= manifest.settings.tokens_per_shard) {
    const int64_t bytes = 2 * std::min(left, manifest.settings.tokens_per_shard);
    const fs::path file = path("huge") / shard_name(manifest.shards.size());
    std::ofstream(file).close();
    fs::resize_file(file, static_cast<uintmax_t>(bytes));
    manifest.shards.push_back({bytes, ""});
  }
  {
    std::ofstream index(path("huge") / documents_name, std::ios::binary);
    for (int64_t i = 1; i <= manifest.documents; ++i) {
      const int64_t end = manifest.tokens / manifest.documents * i;
      index.write(reinterpret_cast<const char*>(&end), sizeof end);
    }
  }
  manifest.index = {manifest.documents * 8, ""};
  write_manifest(manifest, path("huge"));

  [[maybe_unused]] const int64_t own = kilobytes("RssAnon");
  const int64_t mapped = kilobytes("RssFile");
  const CorpusBlocks blocks(std::make_shared<const Corpus>(path("huge")), {.block_size = 1024});
  EXPECT_EQ(blocks.size(), 48'828'125);
  std::mt19937_64 random(1);
  constexpr int64_t reads = 300;
  for (int64_t i = 0; i < reads; ++i) {
    const Block block = blocks.read(static_cast<int64_t>(random() % static_cast<uint64_t>(blocks.size())));
    ASSERT_EQ(block.ids.size(), 1024);
    ASSERT_LE(block.starts.size(), 2);
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // their shadow memory would be counted
  EXPECT_LE(kilobytes("RssAnon") - own, 4 << 10);
#endif
  // A block lies on up to two pages of tokens, and a search for its document visits up to 23 pages of the
  // index; for each, the kernel maps up to 16 neighbouring pages that are in memory.
  EXPECT_LE(kilobytes("RssFile") - mapped, reads * (2 + 3) * 64 + (32 << 10));
}

}  // namespace
}  // namespace stretto::token_corpus
