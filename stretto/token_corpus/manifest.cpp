#include "stretto/token_corpus/manifest.h"

#include <nlohmann/json.hpp>

#include "stretto/base/enum_names.h"
#include "stretto/base/error.h"
#include "stretto/base/files.h"
#include "stretto/base/hash.h"
#include "stretto/base/json.h"

namespace stretto::token_corpus {
namespace {

using nlohmann::ordered_json;

constexpr const char* format = "stretto token corpus 1";

ordered_json to_json(const CheckedFile& file) { return {{"bytes", file.bytes}, {"checksum", file.checksum}}; }

ordered_json to_json(const CorpusSettings& settings) {
  ordered_json sources = ordered_json::array();
  for (const SourceFile& source : settings.sources)
    sources.push_back({{"path", source.path}, {"bytes", source.bytes}, {"sample", source.sample}});
  return {{"documents", name_of(settings.documents.rule)},
          {"keep_newlines", settings.documents.keep_newlines},
          {"column", settings.documents.column},
          {"before", settings.before},
          {"after", settings.after},
          {"tokens_per_shard", settings.tokens_per_shard},
          {"sources", std::move(sources)}};
}

// Reads a number of a manifest, which anyone may have edited.
int64_t count_in(const nlohmann::json& object, const char* name) {
  const auto value = whole_number(object.at(name));
  if (value && *value >= 0) return *value;
  throw DataError("{} is {}; expected a whole number from 0 on", name, object.at(name).dump());
}

CheckedFile checked_file(const nlohmann::json& file) {
  return {count_in(file, "bytes"), file.at("checksum").get<std::string>()};
}

std::vector<int32_t> ids_in(const nlohmann::json& list) {
  std::vector<int32_t> ids;
  for (const nlohmann::json& id : list) ids.push_back(id.get<int32_t>());
  return ids;
}

CorpusSettings settings_of(const nlohmann::json& json) {
  CorpusSettings settings;
  settings.documents = {.rule = parse_enum<DocumentRule>(json.at("documents").get<std::string>()),
                        .keep_newlines = json.at("keep_newlines").get<bool>(),
                        .column = json.at("column").get<std::string>()};
  settings.before = ids_in(json.at("before"));
  settings.after = ids_in(json.at("after"));
  settings.tokens_per_shard = count_in(json, "tokens_per_shard");
  for (const nlohmann::json& source : json.at("sources")) {
    settings.sources.push_back({source.at("path").get<std::string>(), count_in(source, "bytes"),
                                source.at("sample").get<std::string>()});
  }
  return settings;
}

Position position_of(const nlohmann::json& json) {
  return {.file = static_cast<size_t>(count_in(json, "file")),
          .offset = count_in(json, "offset"),
          .line = count_in(json, "line"),
          .in_document = json.at("in_document").get<bool>()};
}

// Throws unless counts and sizes agree; those of an unfinished corpus describe the part that is kept.
void require_consistent(const Manifest& manifest) {
  const auto width = static_cast<int64_t>(manifest.token_bytes());
  const int64_t per_shard = manifest.settings.tokens_per_shard;
  constexpr int64_t most = int64_t{1} << 50;
  bool fits = per_shard > 0 && per_shard < most && manifest.tokens < most && manifest.documents < most &&
              manifest.documents <= manifest.tokens &&
              std::ssize(manifest.shards) == (manifest.tokens + per_shard - 1) / per_shard &&
              manifest.index.bytes == manifest.documents * static_cast<int64_t>(sizeof(int64_t));
  int64_t left = manifest.tokens;
  for (size_t i = 0; fits && i < manifest.shards.size(); ++i) {
    fits = manifest.shards[i].bytes == std::min(left, per_shard) * width;
    left -= per_shard;
  }
  if (!fits) throw DataError("its counts do not fit the sizes of its files");
}

Manifest parse(const nlohmann::json& json) {
  if (!json.is_object() || json.value("format", "") != format)
    throw DataError("its format is not \"{}\"; tokenize the text again with this version", format);
  Manifest manifest;
  const nlohmann::json& tokenizer = json.at("tokenizer");
  manifest.tokenizer = {tokenizer.at("fingerprint").get<std::string>(),
                        tokenizer.at("kind").get<std::string>(), count_in(tokenizer, "vocab_size")};
  manifest.settings = settings_of(json.at("settings"));
  manifest.tokens = count_in(json, "tokens");
  manifest.documents = count_in(json, "documents");
  manifest.empty_documents = count_in(json, "empty_documents");
  manifest.text_bytes = count_in(json, "text_bytes");
  for (const nlohmann::json& shard : json.at("shards")) manifest.shards.push_back(checked_file(shard));
  manifest.index = checked_file(json.at("index"));
  manifest.next = json.at("next").is_null() ? std::nullopt : std::optional(position_of(json.at("next")));
  require_consistent(manifest);
  return manifest;
}

// The library's message without its error number.
std::string reason(const nlohmann::json::exception& error) {
  const std::string_view what = error.what();
  const size_t end = what.find("] ");
  return std::string(end == std::string_view::npos ? what : what.substr(end + 2));
}

}  // namespace

std::string shard_name(size_t shard) { return fmt::format("tokens-{:05}.bin", shard); }

std::string manifest_text(const Manifest& manifest) {
  ordered_json json = {{"format", format},
                       {"tokens", manifest.tokens},
                       {"documents", manifest.documents},
                       {"empty_documents", manifest.empty_documents},
                       {"text_bytes", manifest.text_bytes},
                       {"dtype", manifest.token_bytes() == 2 ? "uint16" : "uint32"},
                       {"tokenizer",
                        {{"fingerprint", manifest.tokenizer.fingerprint},
                         {"kind", manifest.tokenizer.kind},
                         {"vocab_size", manifest.tokenizer.vocab_size}}},
                       {"settings", to_json(manifest.settings)},
                       {"shards", ordered_json::array()},
                       {"index", to_json(manifest.index)},
                       {"next", nullptr}};
  for (const CheckedFile& shard : manifest.shards) json["shards"].push_back(to_json(shard));
  if (manifest.next) {
    json["next"] = {{"file", manifest.next->file},
                    {"offset", manifest.next->offset},
                    {"line", manifest.next->line},
                    {"in_document", manifest.next->in_document}};
  }
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

void write_manifest(const Manifest& manifest, const std::filesystem::path& corpus) {
  write_file_atomic(corpus / manifest_name, manifest_text(manifest));
}

Manifest parse_manifest(std::string_view text, const std::string& name) {
  const nlohmann::json json = parse_json(text, name);
  try {
    return parse(json);
  } catch (const nlohmann::json::exception& error) {
    throw DataError("{}: damaged: {}; tokenize the text again", name, reason(error));
  } catch (const Error& error) {
    throw DataError("{}: {}", name, error.what());
  }
}

Manifest read_manifest(const std::filesystem::path& corpus) {
  const std::filesystem::path file = corpus / manifest_name;
  return parse_manifest(MappedFile(file).text(), file.string());
}

bool is_corpus(const std::filesystem::path& folder) {
  return std::filesystem::exists(folder / manifest_name);
}

}  // namespace stretto::token_corpus
