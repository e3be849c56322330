// Texts of instructions to kernels: one form for each variant and each kind of memory that its selectors can name.
#include <algorithm>
#include <cctype>
#include <iterator>
#include <set>
#include <utility>

#include "core/hw/reader.h"
#include "dlc/ops/record.h"

namespace dlc {

namespace {

constexpr size_t kMaxForms = 1024;  // of one variant

bool word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; }

// Calls f(word, position after it) for each name in the text, dotted names as one.
template <class F>
void for_each_name(std::string_view text, F f) {
  for (size_t i = 0; i < text.size();) {
    if (!word_char(text[i]) || text[i] == '.') {
      ++i;
      continue;
    }
    size_t end = i;
    while (end < text.size() && word_char(text[end])) ++end;
    if (!std::isdigit(static_cast<unsigned char>(text[i]))) f(text.substr(i, end - i), end);
    i = end;
  }
}

std::set<std::string> names_before_bracket(std::string_view text) {
  std::set<std::string> names;
  for_each_name(text, [&](std::string_view name, size_t end) {
    while (end < text.size() && text[end] == ' ') ++end;
    if (end < text.size() && text[end] == '[') names.emplace(name);
  });
  return names;
}

// The statements of a variant as one text, and what each of its characters was in the description.
struct Joined {
  struct Origin {
    size_t text = 0, at = 0;  // of HwVariant::texts, and the offset in it
  };
  std::string text;
  std::vector<Origin> origin;
  std::vector<std::string> names;  // that stages define

  void add(std::string_view s, size_t from, size_t at, bool is_copy) {
    for (size_t i = 0; i < s.size(); ++i) origin.push_back({from, is_copy ? at + i : at});
    text += s;
  }
};

// "x = a", "x = f(x)", "T[i] = x" to "let x_1 = a", "let x_2 = f(x_1)", "T[i] = x_2".
Result<Joined> join_stages(const HwVariant& v) {
  std::map<std::string, int, std::less<>> version;
  Joined out;
  for (size_t s = 0; s < v.texts.size(); ++s) {
    const std::string& text = v.texts[s];
    const bool last = s + 1 == v.texts.size();
    size_t begin = 0;
    std::string defined;
    if (!last) {
      const size_t equals = text.find('=');
      defined = text.substr(0, equals);
      std::erase(defined, ' ');
      const bool name = !defined.empty() && std::all_of(defined.begin(), defined.end(), word_char);
      if (equals == std::string::npos || !name)
        return fail(v.loc, "stage " + std::to_string(s + 1) + " is not of the form \"name = expression\": " + text);
      begin = equals + 1;
    }
    if (!last) {
      out.names.push_back(defined);
      out.add("let " + defined + "_" + std::to_string(version[defined] + 1) + " =", s, 0, false);
    }
    size_t copied = begin;
    const std::string_view rest = std::string_view(text).substr(begin);
    for_each_name(rest, [&](std::string_view name, size_t end) {
      const auto it = version.find(name);
      if (it == version.end()) return;
      const size_t at = begin + end - name.size();
      out.add(text.substr(copied, at - copied), s, copied, true);
      if (it->second > 0) out.add(std::string(name) + "_" + std::to_string(it->second), s, at, false);
      if (it->second == 0) out.add(name, s, at, true);
      copied = begin + end;
    });
    out.add(text.substr(copied), s, copied, true);
    if (!last) {
      ++version[defined];
      out.add("\n", s, text.size(), false);
    }
  }
  return out;
}

// One choice of a selector: the enumerators whose memories look the same.
struct Group {
  int space = -1;  // one of them; -1: not a memory
  std::vector<int64_t> values;
};

struct Selector {
  int field = -1;
  std::vector<Group> groups;
};

bool same_kind(const HwDescription& hw, int a, int b) {
  if (a < 0 || b < 0) return false;
  const HwState &x = hw.state_of(a), &y = hw.state_of(b);
  return &x == &y || (x.kind == y.kind && x.elem == y.elem && x.words == y.words && x.entries == y.entries);
}

class FormBuilder {
 public:
  FormBuilder(ReadContext& cx, HwInsn& insn) : cx_(cx), hw_(cx.hw), insn_(insn) {}

  void build() {
    for (const HwVariant& v : insn_.variants) variant(v);
  }

 private:
  const HwField& field(int i) const { return insn_.fields[static_cast<size_t>(i)]; }

  // Where the description says what begins at `offset` of the joined text.
  Loc place(const HwVariant& v, size_t offset) const {
    const auto locs = cx_.text_locs.find(insn_.name + "." + v.name);
    if (offset >= joined_.origin.size() || locs == cx_.text_locs.end()) return v.loc;
    const Joined::Origin o = joined_.origin[offset];
    Loc loc = locs->second[o.text];
    loc.column += static_cast<int>(o.at);
    return loc;
  }
  Loc place_of(const HwVariant& v, std::string_view wanted) const {
    std::optional<size_t> at;
    for_each_name(joined_.text, [&](std::string_view name, size_t end) {
      if (!at && name == wanted) at = end - name.size();
    });
    return at ? place(v, *at) : v.loc;
  }

  // What a text of this instruction may say.
  std::vector<std::string> known_names() const {
    std::vector<std::string> all = joined_.names;
    const auto add = [&](const auto& of) { std::ranges::copy(names_of(of), std::back_inserter(all)); };
    add(insn_.fields);
    add(hw_.params);
    add(hw_.spaces);
    add(hw_.defs);
    for (const HwField& f : insn_.fields) add(f.enumerators);
    for (const Loop& l : insn_.loops) all.push_back(l.var);
    for (const HwState& s : hw_.state)
      for (const HwView& w : s.views) all.push_back(s.name + "." + w.name);
    return all;
  }

  // The op language has seen the joined text, and of the names only those that it mentions: the place in the
  // description, and the nearest of all names.
  void explain(const HwVariant& v, const std::string& text, Diagnostic& d) const {
    size_t line_begin = 0;
    for (int line = v.loc.line; line < d.loc.line && line_begin < text.size(); ++line)
      line_begin = std::min(text.find('\n', line_begin), text.size() - 1) + 1;
    const int first_column = d.loc.line == v.loc.line ? v.loc.column : 1;
    if (d.loc.line < v.loc.line || d.loc.column < first_column) return;
    const size_t at = line_begin + static_cast<size_t>(d.loc.column - first_column);
    if (at >= text.size()) return;
    d.loc = place(v, at);
    for_each_name(std::string_view(text).substr(at), [&, first = true](std::string_view name, size_t end) mutable {
      const bool here = std::exchange(first, false) && end == name.size();
      if (!here || !d.message.starts_with("`" + std::string(name) + "` is not ")) return;
      if (const std::string hint = did_you_mean(name, known_names()); !hint.empty()) d.hint = hint;
    });
  }

  void variant(const HwVariant& v) {
    joined_ = {};
    if (v.staged) {
      auto joined = join_stages(v);
      if (!joined) return cx_.error(joined.error());
      joined_ = *std::move(joined);
    } else {
      joined_.add(v.texts[0], 0, 0, true);
    }
    const std::string text =
        replace_enumerators(joined_.text, [&](std::string_view f, std::string_view name) -> std::optional<int64_t> {
          const int i = insn_.field(f);
          const HwEnumerator* e = i < 0 ? nullptr : field(i).find(name);
          return e ? std::optional<int64_t>(e->value) : std::nullopt;
        });
    const auto names = names_before_bracket(text);
    std::vector<Selector> selectors;
    for (const std::string& name : names) {
      const int f = insn_.field(name);
      if (f >= 0) selectors.push_back(selector(v, f));
    }
    size_t forms = 1;
    for (const Selector& s : selectors) forms = std::min(forms * s.groups.size(), kMaxForms + 1);
    if (forms > kMaxForms)
      return cx_.error(v.loc, "insn '" + insn_.name + "' has more than " + std::to_string(kMaxForms) +
                                  " combinations of selected memories");
    std::vector<size_t> choice(selectors.size(), 0);
    while (true) {
      if (!form(v, text, names, selectors, choice)) return;
      size_t i = 0;
      while (i < choice.size() && ++choice[i] == selectors[i].groups.size()) choice[i++] = 0;
      if (i == choice.size()) return;
    }
  }

  Selector selector(const HwVariant& v, int f) const {
    Selector s{f, {}};
    for (const HwEnumerator& e : field(f).enumerators) {
      const bool allowed =
          std::none_of(v.fix.begin(), v.fix.end(), [&](const auto& x) { return x.first == f && x.second != e.value; });
      if (!allowed) continue;
      const auto it = std::find_if(s.groups.begin(), s.groups.end(),
                                   [&](const Group& g) { return same_kind(hw_, g.space, e.space); });
      if (it != s.groups.end())
        it->values.push_back(e.value);
      else
        s.groups.push_back({e.space, {e.value}});
    }
    if (s.groups.empty()) s.groups.push_back({-1, {}});
    return s;
  }

  // The tensor of a space under the name that the text uses.
  KernelTensor tensor(const std::string& name, int space) const {
    if (space < 0) return {name, kS64, {Expr(0), Expr(0)}, Role::state, std::nullopt};
    const HwState& s = hw_.state_of(space);
    KernelTensor t{name, s.elem.dtype, {Expr(s.words)}, s.kind == HwState::Kind::rom ? Role::input : Role::state, {}};
    if (s.kind == HwState::Kind::external) t.shape = {Expr::symbol(name + ".words")};
    if (s.elem.lanes > 0) t.shape.push_back(Expr(s.elem.lanes));
    if (s.kind == HwState::Kind::table) t.shape.push_back(Expr(s.entries));
    return t;
  }

  KernelTensor view(const std::string& name, const HwState& s, const HwView& v, int base) const {
    const int64_t word = s.elem.bytes();
    const int64_t room = s.words * word - v.offset * word - v.elem.bytes();
    KernelTensor t{name, v.elem.dtype, {Expr(room / (v.step * word) + 1)}, Role::state, View{}};
    t.view->base = base;
    t.view->byte_offset = Expr(v.offset * word);
    t.view->byte_strides = {Expr(v.step * word)};
    if (v.elem.lanes > 0) {
      t.shape.push_back(Expr(v.elem.lanes));
      t.view->byte_strides.push_back(Expr(v.elem.dtype.bytes()));
    }
    return t;
  }

  void add(HwForm& form, FragmentContext& context, KernelTensor t, HwOperand o) {
    context.tensors.push_back(std::move(t));
    form.operands.push_back(std::move(o));
  }

  bool operands(const HwVariant& v, const std::set<std::string>& names, const std::vector<Selector>& selectors,
                const std::vector<size_t>& choice, HwForm& form, FragmentContext& context) {
    for (const std::string& name : names) {
      if (const int f = insn_.field(name); f >= 0) {
        for (size_t i = 0; i < selectors.size(); ++i)
          if (selectors[i].field == f)
            add(form, context, tensor(name, selectors[i].groups[choice[i]].space), {-1, f, ""});
        continue;
      }
      if (const int space = hw_.find_space(name); space >= 0) {
        const bool have = std::any_of(context.tensors.begin(), context.tensors.end(),
                                      [&](const KernelTensor& t) { return t.name == name; });
        if (!have) add(form, context, tensor(name, space), {space, -1, ""});
        continue;
      }
      const size_t dot = name.find('.');
      const int state = dot == std::string::npos ? -1 : hw_.find_state(name.substr(0, dot));
      if (state < 0) continue;  // a reduction, or an unknown name that the op language will report
      if (!view_operand(v, name, state, form, context)) return false;
    }
    return true;
  }

  bool view_operand(const HwVariant& v, const std::string& name, int state, HwForm& form, FragmentContext& context) {
    const HwState& s = hw_.state[static_cast<size_t>(state)];
    const std::string view_name = name.substr(s.name.size() + 1);
    const auto it = std::find_if(s.views.begin(), s.views.end(), [&](const HwView& w) { return w.name == view_name; });
    if (it == s.views.end()) {
      cx_.unknown(place_of(v, name), "view", view_name, names_of(s.views), "of memory '" + s.name + "'");
      return false;
    }
    const int space = hw_.find_space(s.name);
    int base = -1;
    for (size_t i = 0; i < context.tensors.size(); ++i)
      if (context.tensors[i].name == s.name) base = static_cast<int>(i);
    if (base < 0) {
      base = static_cast<int>(context.tensors.size());
      add(form, context, tensor(s.name, space), {space, -1, ""});
    }
    add(form, context, view(name, s, *it, base), {space, -1, view_name});
    return true;
  }

  bool form(const HwVariant& v, const std::string& text, const std::set<std::string>& names,
            const std::vector<Selector>& selectors, const std::vector<size_t>& choice) {
    HwForm out;
    out.variant = v.name;
    FragmentContext context;
    context.defs = hw_.defs_text;
    std::map<std::string, Expr, std::less<>> values;
    for (const HwParam& p : hw_.params) {
      context.symbols.push_back(p.name);
      values.emplace(p.name, Expr(p.value));
    }
    for (const HwField& f : insn_.fields) context.symbols.push_back(f.name);
    for (const Loop& l : insn_.loops)
      if (mentions_word(text, l.var)) context.loops.push_back(l);
    for (const auto& [f, value] : v.fix) {
      out.when.push_back({f, {value}});
      values.insert_or_assign(field(f).name, Expr(value));
    }
    for (size_t i = 0; i < selectors.size(); ++i) {
      const Group& g = selectors[i].groups[choice[i]];
      const int f = selectors[i].field;
      const bool fixed = std::any_of(v.fix.begin(), v.fix.end(), [&](const auto& x) { return x.first == f; });
      if (!fixed) out.when.push_back({f, g.values});
      if (g.values.size() == 1) values.insert_or_assign(field(f).name, Expr(g.values[0]));
    }
    if (!operands(v, names, selectors, choice, out, context)) return false;
    const size_t given = context.tensors.size();
    auto kernel = parse_fragment(text, context, v.loc);
    if (!kernel) {
      for (Diagnostic& d : kernel.error().diagnostics) explain(v, text, d);
      cx_.error(kernel.error());
      return false;
    }
    out.kernel = substitute(*kernel, values);
    out.kernel.name = insn_.name + (v.name.empty() ? "" : "." + v.name);
    return accept(v, given, std::move(out));
  }

  bool accept(const HwVariant& v, size_t given, HwForm form) {
    if (form.kernel.tensors.size() < given) {
      cx_.error(v.loc, "insn '" + insn_.name + "' lost a memory on the way to a kernel");
      return false;
    }
    form.operands.resize(form.kernel.tensors.size());  // temporaries have no memory
    for (const auto& problem : problems(v, form)) {
      cx_.error(problem);
      return false;
    }
    if (auto right = verify(form.kernel); !right) {
      for (Diagnostic& d : right.error().diagnostics) d.loc = v.loc;
      cx_.error(right.error());
      return false;
    }
    insn_.forms.push_back(std::move(form));
    return true;
  }

  // Stores to ROMs, and uses of a selector whose enumerator is no memory.
  std::vector<Error> problems(const HwVariant& v, const HwForm& form) const {
    std::vector<std::string> memories;
    for (const HwSpace& s : hw_.spaces) memories.push_back(s.name.substr(s.name.find('.') + 1));
    std::vector<Error> out;
    const auto use = [&](int tensor, bool store) {
      const HwOperand& o = form.operands[static_cast<size_t>(tensor)];
      if (store && o.space >= 0 && hw_.state_of(o.space).kind == HwState::Kind::rom)
        out.emplace_back(v.loc, "insn '" + insn_.name + "' stores to the rom '" + hw_.state_of(o.space).name + "'");
      if (o.selector < 0) return;
      for (const auto& [f, values] : form.when)
        for (const int64_t value : values)
          if (const HwEnumerator* e = field(f).find(value); f == o.selector && e && e->space < 0)
            out.emplace_back(field(f).loc,
                             "insn '" + insn_.name + "' uses field '" + field(f).name + "' as a memory where it is '" +
                                 e->name + "', which names none",
                             did_you_mean(e->name, memories));
    };
    walk(form.kernel.body, [&](const Stmt& s) {
      if (s.kind != Stmt::Kind::assign) return;
      use(s.tensor, true);
      const auto reads = [&](const ValNode& n) {
        if (n.kind == ValKind::read) use(n.tensor, false);
      };
      walk(s.value, reads);
      for (const Val& i : s.indices) walk(i, reads);
    });
    return out;
  }

  ReadContext& cx_;
  const HwDescription& hw_;
  HwInsn& insn_;
  Joined joined_;  // of the variant at hand
};

}  // namespace

void build_forms(ReadContext& cx) {
  for (HwInsn& insn : cx.hw.isa.insns) FormBuilder(cx, insn).build();
}

}  // namespace dlc
