#include "stretto/settings/yaml.h"

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "stretto/base/error.h"
#include "stretto/base/json.h"
#include "stretto/base/strings.h"

namespace stretto::settings {
namespace {

constexpr size_t max_bytes = 1 << 20;
constexpr size_t max_depth = 32;

// The rest of `text` from `mark` on. yaml-cpp's positions are in bytes, without a byte order mark.
std::string_view text_from(std::string_view text, const YAML::Mark& mark) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text.substr(std::min(static_cast<size_t>(mark.pos), text.size()));
}

// Whether `text` begins with one of YAML's words for null.
bool begins_with_null(std::string_view text) {
  for (const std::string_view word : {"null", "Null", "NULL", "~"}) {
    if (!text.starts_with(word)) continue;
    const std::string_view rest = text.substr(word.size());
    if (rest.empty() || std::string_view(" \t\r\n,]}#").find(rest.front()) != std::string_view::npos)
      return true;
  }
  return false;
}

// Builds the tree from yaml-cpp's events, so that limits are enforced while parsing.
class TreeBuilder : public YAML::EventHandler {
 public:
  // `repeated`: null if a key must not occur twice.
  TreeBuilder(std::string_view text, std::string name, std::vector<std::string>* repeated)
      : text_(text), name_(std::move(name)), repeated_(repeated) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1)
      throw ConfigError("{}: a second document begins; expected one document", place(mark));
  }
  void OnDocumentEnd() override {}

  // For an empty value, `mark` is that of the next token.
  void OnNull(const YAML::Mark& mark, YAML::anchor_t) override {
    YamlNode null = node(YamlNode::Kind::null, mark);
    null.is_empty = !begins_with_null(text_from(text_, mark));
    add(std::move(null));
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw ConfigError("{}: aliases (*name) are not supported; write the value out", place(mark));
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                const std::string& value) override {
    refuse_tag(tag, mark);
    last_scalar_ = mark;
    YamlNode scalar = node(YamlNode::Kind::scalar, mark);
    scalar.text = value;
    scalar.is_quoted = tag == "!";
    add(std::move(scalar));
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::sequence, tag, mark);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::mapping, tag, mark);
  }
  void OnMapEnd() override { close(); }

  std::string place(const YAML::Mark& mark) const {
    return fmt::format("{}:{}:{}", name_, mark.line + 1, mark.column + 1);
  }
  const std::optional<YAML::Mark>& last_scalar() const { return last_scalar_; }
  YamlNode take() { return std::move(root_); }

 private:
  // A collection that is not closed yet; for a mapping, the key whose value comes next.
  struct Open {
    YamlNode node;
    std::optional<YamlNode> key;
    std::map<std::string, std::string> places;  // of the keys so far
  };

  YamlNode node(YamlNode::Kind kind, const YAML::Mark& mark) const {
    YamlNode result;
    result.kind = kind;
    result.place = place(mark);
    return result;
  }

  void refuse_tag(const std::string& tag, const YAML::Mark& mark) const {
    const bool written_by_user = !tag.empty() && tag != "?" && tag != "!";
    if (written_by_user) throw ConfigError("{}: the tag {} is not supported; remove it", place(mark), tag);
  }

  void open(YamlNode::Kind kind, const std::string& tag, const YAML::Mark& mark) {
    refuse_tag(tag, mark);
    if (open_.size() >= max_depth)
      throw ConfigError("{}: nested deeper than {} levels", place(mark), max_depth);
    open_.push_back({node(kind, mark), {}, {}});
  }

  void close() {
    YamlNode done = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(done));
  }

  void add(YamlNode child) {
    if (open_.empty()) {
      root_ = std::move(child);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.kind == YamlNode::Kind::mapping) {
      if (!parent.key) return begin_entry(parent, std::move(child));
      child.key = std::move(parent.key->text);
      child.key_place = std::move(parent.key->place);
      parent.key.reset();
    }
    parent.node.children.push_back(std::move(child));
  }

  void begin_entry(Open& mapping, YamlNode key) {
    if (key.kind != YamlNode::Kind::scalar) throw ConfigError("{}: a key must be plain text", key.place);
    const auto [earlier, is_new] = mapping.places.emplace(key.text, key.place);
    if (!is_new) replace_entry(mapping, key, earlier->second);
    mapping.key = std::move(key);
  }

  // Removes the entry of a key that occurs again. `place`: of the removed entry.
  void replace_entry(Open& mapping, const YamlNode& key, std::string& place) {
    if (repeated_ == nullptr) {
      throw ConfigError("{}: the key \"{}\" was already set at {}; remove one of them", key.place, key.text,
                        place);
    }
    repeated_->push_back(fmt::format("{}: the key \"{}\" was already set at {}, where it has no effect",
                                     key.place, key.text, place));
    std::erase_if(mapping.node.children, [&](const YamlNode& child) { return child.key == key.text; });
    place = key.place;
  }

  std::string_view text_;
  std::string name_;
  std::vector<std::string>* repeated_;
  int documents_ = 0;
  std::vector<Open> open_;
  YamlNode root_;
  std::optional<YAML::Mark> last_scalar_;
};

// yaml-cpp treats 0x04 as the end of the file and accepts other control characters.
void refuse_control_characters(const std::string& text, const std::string& name) {
  size_t line = 1;
  size_t line_begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (c == '\n') {
      ++line;
      line_begin = i + 1;
    } else if (c < 0x20 && c != '\t' && c != '\r') {
      throw ConfigError("{}:{}:{}: the byte 0x{:02x} is not text; expected text in UTF-8", name, line,
                        i - line_begin + 1, c);
    }
  }
}

// YAML allows spaces only; yaml-cpp's message does not mention the tab, and its line may be wrong.
void refuse_tab_indentation(const std::string& text, const std::string& name) {
  size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    const size_t begin = line.find_first_not_of(" \t\r");
    const size_t tab = line.find('\t');
    if (begin == std::string_view::npos || line[begin] == '#' || tab >= begin) continue;
    throw ConfigError("{}:{}:{}: a tab in the indentation; YAML is indented by spaces only", name, number,
                      tab + 1);
  }
}

// yaml-cpp accepts a quote that is not closed at the end of the file.
bool is_closed_quote(const std::string& text, const YAML::Mark& mark) {
  const std::string_view scalar = text_from(text, mark);
  if (scalar.empty() || (scalar[0] != '"' && scalar[0] != '\'')) return true;
  const char quote = scalar[0];
  for (size_t i = 1; i < scalar.size(); ++i) {
    if (quote == '"' && scalar[i] == '\\') {
      ++i;
    } else if (scalar[i] == quote) {
      if (quote == '"' || i + 1 == scalar.size() || scalar[i + 1] != quote) return true;
      ++i;
    }
  }
  return false;
}

// Whether a document is meant as JSON, of which YAML is a superset.
bool is_json(std::string_view text, const std::string& name) {
  if (name.ends_with(".json")) return true;
  const std::string_view content = trim(text);
  return content.starts_with('{') && trim(content.substr(1)).starts_with('"');
}

// YAML ignores a comma before a closing bracket, other readers of JSON do not. REQUIRES: `text` is valid
// YAML.
void refuse_trailing_commas(const std::string& text, const std::string& name) {
  std::string comma;  // the place of the last one if only white space has followed
  size_t line = 1, line_begin = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      line_begin = i + 1;
    } else if (c == ',') {
      comma = fmt::format("{}:{}:{}", name, line, i - line_begin + 1);
    } else if ((c == '}' || c == ']') && !comma.empty()) {
      throw ConfigError("{}: not valid JSON: a comma before {}; remove it", comma, c);
    } else if (c == '"') {
      comma.clear();
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (std::string_view(" \t\r").find(c) == std::string_view::npos) {
      comma.clear();
    }
  }
}

// The message for a document that yaml-cpp refuses.
std::string describe_syntax_error(const std::string& text, const std::string& name, const std::string& place,
                                  const std::string& reason) {
  if (!is_json(text, name)) return fmt::format("{}: not valid YAML: {}", place, reason);
  try {
    parse_json(text, name, max_depth);
  } catch (const DataError& error) {
    return error.what();
  }
  return fmt::format("{}: this JSON cannot be read: {}", place, reason);
}

std::string text_of(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::scalar) return node.text;
  if (node.kind == YamlNode::Kind::null) return "null";
  std::string text;
  for (const YamlNode& child : node.children) text += (text.empty() ? "" : ", ") + text_of(child);
  return "[" + text + "]";
}

void add_texts(const YamlNode& node, const std::string& prefix, std::map<std::string, std::string>& texts) {
  for (const YamlNode& child : node.children) {
    if (child.kind == YamlNode::Kind::mapping) {
      add_texts(child, prefix + child.key + ".", texts);
    } else {
      texts[prefix + child.key] = text_of(child);
    }
  }
}

}  // namespace

const YamlNode* YamlNode::find(std::string_view wanted) const {
  if (kind != Kind::mapping) return nullptr;
  for (const YamlNode& child : children) {
    if (child.key == wanted) return &child;
  }
  return nullptr;
}

YamlNode* YamlNode::find(std::string_view wanted) {
  return const_cast<YamlNode*>(static_cast<const YamlNode&>(*this).find(wanted));
}

static YamlNode parse(const std::string& text, const std::string& name, std::vector<std::string>* repeated) {
  if (text.size() > max_bytes)
    throw ConfigError("{}: larger than {} bytes; this is not a recipe", name, max_bytes);
  refuse_control_characters(text, name);
  refuse_tab_indentation(text, name);
  TreeBuilder builder(text, name, repeated);
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) throw ConfigError("{}: the file is empty", name);
    parser.HandleNextDocument(builder);
  } catch (const YAML::Exception& error) {
    throw ConfigError("{}", describe_syntax_error(text, name, builder.place(error.mark), error.msg));
  }
  const auto last = builder.last_scalar();
  if (last && !is_closed_quote(text, *last))
    throw ConfigError("{}: this quote is never closed", builder.place(*last));
  if (name.ends_with(".json")) refuse_trailing_commas(text, name);
  return builder.take();
}

YamlNode parse_yaml(const std::string& text, const std::string& name) { return parse(text, name, nullptr); }

YamlNode parse_yaml(const std::string& text, const std::string& name, std::vector<std::string>& repeated) {
  return parse(text, name, &repeated);
}

std::map<std::string, std::string> texts_by_name(const YamlNode& document) {
  std::map<std::string, std::string> texts;
  add_texts(document, "", texts);
  return texts;
}

}  // namespace stretto::settings
