#include "core/hw/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <sstream>

namespace dlc::yaml {

namespace {

struct Refused {
  Loc loc;
  std::string message, hint;
};

// Builds the tree from yaml-cpp's events; throws Refused, which parse() catches.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(std::shared_ptr<const std::string> file) : file_(std::move(file)) {}

  Ptr root() const { return root_; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(make(Kind::null, mark, "?"), anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    auto n = make(Kind::scalar, mark, tag);
    for (const char c : value)
      if (const auto u = static_cast<unsigned char>(c); (u < 0x20 && c != '\n' && c != '\t') || u == 0x7f)
        throw Refused{at(mark), "a text with a control character", "letters, blanks and new lines only"};
    n->quoted = tag == "!";
    n->text = value;
    add(std::move(n), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end()) throw Refused{at(mark), "alias to an anchor that is not complete here", ""};
    count(it->second->nodes, mark);
    attach(it->second, at(mark));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(make(Kind::sequence, mark, tag), anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(make(Kind::map, mark, tag), anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    std::shared_ptr<Node> node;
    YAML::anchor_t anchor;
    bool have_key = false;
  };

  Loc at(const YAML::Mark& mark) const { return {*file_, mark.line + 1, mark.column + 1, {}}; }

  std::shared_ptr<Node> make(Kind kind, const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") throw Refused{at(mark), "tag '" + tag + "' is not allowed", ""};
    count(1, mark);
    auto n = std::make_shared<Node>();
    n->kind = kind;
    n->file = file_;
    n->line = mark.line + 1;
    n->column = mark.column + 1;
    return n;
  }
  void count(int64_t nodes, const YAML::Mark& mark) {
    total_ += nodes;
    if (total_ > kMaxNodes)
      throw Refused{at(mark), "more than " + std::to_string(kMaxNodes) + " values after expanding aliases", ""};
  }
  void open(std::shared_ptr<Node> n, YAML::anchor_t anchor) {
    if (stack_.size() >= static_cast<size_t>(kMaxDepth))
      throw Refused{n->loc(), "nested deeper than " + std::to_string(kMaxDepth) + " levels", ""};
    stack_.push_back({std::move(n), anchor, false});
  }
  void close() {
    Open top = std::move(stack_.back());
    stack_.pop_back();
    add(std::move(top.node), top.anchor);
  }
  void add(std::shared_ptr<Node> n, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) anchors_[anchor] = n;
    const Loc loc = n->loc();
    attach(std::move(n), loc);
  }
  void attach(Ptr n, const Loc& loc) {
    if (stack_.empty()) {
      root_ = std::move(n);
      return;
    }
    Open& top = stack_.back();
    if (top.node->kind == Kind::sequence) {
      top.node->nodes += n->nodes;
      top.node->items.push_back(std::move(n));
    } else if (top.have_key) {
      top.have_key = false;
      top.node->nodes += n->nodes;
      top.node->entries.back().value = std::move(n);
    } else {
      add_key(top, *n, loc);
    }
  }
  void add_key(Open& top, const Node& key, const Loc& loc) {
    if (key.kind != Kind::scalar) throw Refused{loc, "a key must be text", ""};
    if (key.text == "<<") throw Refused{loc, "merge key '<<' is not allowed", "use like: name"};
    if (const Entry* old = top.node->find(key.text))
      throw Refused{loc, "key '" + key.text + "' appears twice; first at line " + std::to_string(old->line), ""};
    if (top.node->entries.size() >= kMaxEntries)
      throw Refused{loc, "a map of more than " + std::to_string(kMaxEntries) + " keys", ""};
    top.node->add({key.text, loc.line, loc.column, nullptr});
    top.have_key = true;
  }

  std::shared_ptr<const std::string> file_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Ptr> anchors_;
  int64_t total_ = 0;
  Ptr root_;
};

// Where the text is not UTF-8, or npos.
size_t not_utf8(std::string_view s) {
  for (size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    const size_t more = c < 0x80                ? 0
                        : c >= 0xc2 && c < 0xe0 ? 1
                        : c >= 0xe0 && c < 0xf0 ? 2
                        : c >= 0xf0 && c < 0xf5 ? 3
                                                : 4;
    if (more == 4 || i + more >= s.size()) return i;
    for (size_t k = 1; k <= more; ++k)
      if ((static_cast<unsigned char>(s[i + k]) & 0xc0) != 0x80) return i;
    i += more + 1;
  }
  return std::string_view::npos;
}

}  // namespace

const Entry* Node::find(std::string_view key) const {
  const auto it = index.find(key);
  return it == index.end() ? nullptr : &entries[it->second];
}

void Node::add(Entry e) {
  index.emplace(e.key, entries.size());
  entries.push_back(std::move(e));
}

void Node::remove(std::string_view key) {
  std::vector<Entry> rest;
  rest.swap(entries);
  index.clear();
  for (Entry& e : rest)
    if (e.key != key) add(std::move(e));
}

std::string_view describe(Kind kind) {
  switch (kind) {
    case Kind::null:
      return "nothing";
    case Kind::scalar:
      return "a value";
    case Kind::sequence:
      return "a list";
    case Kind::map:
      return "a map";
  }
  return "?";
}

Result<Ptr> parse(std::string_view text, const std::string& file) {
  const Loc whole{file, 0, 0, {}};
  if (text.size() > kMaxBytes)
    return fail(whole, "file of " + std::to_string(text.size()) + " bytes, the limit is " + std::to_string(kMaxBytes));
  if (text.find('\0') != std::string_view::npos) return fail(whole, "not a text file: it holds a zero byte");
  const auto line_of = [&](size_t at) { return 1 + static_cast<int>(std::ranges::count(text.substr(0, at), '\n')); };
  // UTF-16 begins with a mark that yaml-cpp knows.
  const bool wide = text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff");
  if (const size_t bad = wide ? std::string_view::npos : not_utf8(text); bad != std::string_view::npos)
    return fail({file, line_of(bad), 0, {}}, "the text is not UTF-8", "save the file as UTF-8");
  for (size_t cr = text.find('\r'); cr != std::string_view::npos; cr = text.find('\r', cr + 1))
    if (cr + 1 == text.size() || text[cr + 1] != '\n')
      return fail({file, line_of(cr), 0, {}}, "a carriage return that ends no line",
                  "lines end with \\n, or with \\r\\n");
  std::istringstream in{std::string(text)};
  Builder builder(std::make_shared<const std::string>(file));
  try {
    YAML::Parser parser(in);
    if (!parser.HandleNextDocument(builder) || !builder.root()) return fail(whole, "the file is empty");
    Ptr root = builder.root();
    if (parser.HandleNextDocument(builder))
      return fail(builder.root()->loc(), "a second YAML document; one file describes one machine");
    return root;
  } catch (const Refused& r) {
    return fail(r.loc, r.message, r.hint);
  } catch (const YAML::Exception& e) {
    return fail({file, e.mark.line + 1, e.mark.column + 1, {}}, "not valid YAML: " + e.msg);
  }
}

Ptr merge(const Ptr& base, const Ptr& over) {
  if (base->kind != Kind::map || over->kind != Kind::map) return over;
  auto out = std::make_shared<Node>(*over);
  out->entries.clear();
  out->index.clear();
  out->nodes = 1;
  for (const Entry& b : base->entries) {
    const Entry* o = over->find(b.key);
    if (o && o->value->kind == Kind::null) continue;
    Entry e = o ? *o : b;
    if (o) e.value = merge(b.value, o->value);
    out->add(std::move(e));
  }
  for (const Entry& o : over->entries)
    if (!base->find(o.key)) out->add(o);
  for (const Entry& e : out->entries) out->nodes += e.value->nodes;
  return out;
}

namespace {

void print_text(const std::string& text, std::string& out) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (u < 0x20 || u == 0x7f) {
      out += {'\\', 'x', kHex[u >> 4], kHex[u & 15]};
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  out += '"';
}

void print_flow(const Node& n, std::string& out) {
  if (n.kind == Kind::null) out += "~";
  if (n.kind == Kind::scalar) print_text(n.text, out);
  if (n.kind == Kind::sequence) {
    out += "[";
    for (size_t i = 0; i < n.items.size(); ++i) {
      if (i > 0) out += ", ";
      print_flow(*n.items[i], out);
    }
    out += "]";
  }
  if (n.kind == Kind::map) {
    out += "{";
    for (size_t i = 0; i < n.entries.size(); ++i) {
      if (i > 0) out += ", ";
      print_text(n.entries[i].key, out);
      out += ": ";
      print_flow(*n.entries[i].value, out);
    }
    out += "}";
  }
}

}  // namespace

std::string print(const Node& root) {
  std::string out;
  for (const Entry& e : root.entries) {
    print_text(e.key, out);
    out += ": ";
    print_flow(*e.value, out);
    out += "\n";
  }
  return out;
}

}  // namespace dlc::yaml
