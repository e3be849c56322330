// Walking, rebuilding and substituting values and kernels.
#include <set>

#include "dlc/kernel/kernel.h"
#include "rebuild.h"

namespace dlc {

void add_loop_ranges(const std::vector<Loop>& loops, Ranges& ranges) {
  for (const Loop& l : loops) {
    const auto n = l.extent.constant();
    ranges.insert_or_assign(l.var, n ? Range(0, *n - 1) : Range(0, l.extent - 1));
  }
}

// v's node again over other children, typed and folded anew.
Val rebuild(const ValNode& v, std::vector<Val> args) {
  switch (v.kind) {
    case ValKind::read:
      return val::read(v.tensor, v.type, std::move(args));
    case ValKind::unary:
      return val::unary(v.unary_op(), args[0]);
    case ValKind::binary:
      return val::binary(v.binary_op(), args[0], args[1]);
    case ValKind::select:
      return val::select(args[0], args[1], args[2]);
    case ValKind::orelse:
      return val::orelse(args[0], args[1]);
    case ValKind::call:
      return val::call(v.fn(), std::move(args));
    case ValKind::cast:
      return val::cast(v.to, args[0], v.saturate);
    case ValKind::reduce:
      return val::reduce(v.reduce_op(), v.to, v.loops, args[0]);
    case ValKind::integer:
    case ValKind::real:
    case ValKind::index:
    case ValKind::undef:
      break;
  }
  return std::make_shared<ValNode>(v);
}

Val rewrite(const Val& v, const std::function<Val(const Val&)>& f) {
  std::vector<Val> args;
  args.reserve(v->args.size());
  for (const Val& a : v->args) args.push_back(rewrite(a, f));
  const Val here = args == v->args ? v : rebuild(*v, std::move(args));
  Val changed = f(here);
  return changed ? changed : here;
}

void walk(const Val& v, const std::function<void(const ValNode&)>& f) {
  f(*v);
  for (const Val& a : v->args) walk(a, f);
}

void walk(const std::vector<Stmt>& body, const std::function<void(const Stmt&)>& f) {
  for (const Stmt& s : body) {
    f(s);
    walk(s.body, f);
  }
}

namespace {

using Values = std::map<std::string, Expr, std::less<>>;

void add_names(const Expr& e, std::set<std::string>& names) {
  const auto symbols = e.symbols();
  names.insert(symbols.begin(), symbols.end());
}

void add_names(const std::vector<Loop>& loops, std::set<std::string>& names) {
  for (const Loop& l : loops) {
    names.insert(l.var);
    add_names(l.extent, names);
  }
}

void add_names(const Val& v, std::set<std::string>& names) {
  walk(v, [&](const ValNode& n) {
    if (n.kind == ValKind::index) add_names(n.index, names);
    add_names(n.loops, names);
  });
}

void add_names(const std::vector<Stmt>& body, std::set<std::string>& names) {
  walk(body, [&](const Stmt& s) {
    add_names(s.loops, names);
    for (const Val& i : s.indices) add_names(i, names);
    if (s.value) add_names(s.value, names);
  });
}

// New names for loops: none that is in the text or in the replacements, and each once.
class Fresh {
 public:
  explicit Fresh(std::function<void(std::set<std::string>&)> text) : text_(std::move(text)) {}

  std::string like(const std::string& var, const Values& values) {
    if (!read_) text_(taken_);
    read_ = true;
    for (const auto& [key, e] : values) add_names(e, taken_);
    std::string name = var;
    do name += "_";
    while (!taken_.insert(name).second);
    return name;
  }

 private:
  std::function<void(std::set<std::string>&)> text_;  // read when a name is needed, which is seldom
  std::set<std::string> taken_;
  bool read_ = false;
};

// A loop hides an outer symbol of its name, and takes a new name when a replacement would be captured by it.
class Scope {
 public:
  Scope(const Values& values, Fresh& fresh) : values_(values), fresh_(fresh) {}

  // The scope inside `loops`, which come back with extents substituted and captured names changed.
  static Scope enter(const Scope& outer, std::vector<Loop>& loops) {
    Scope inner(outer.values_, outer.fresh_);
    for (Loop& l : loops) l.extent = substitute(l.extent, outer.values_);
    for (const Loop& l : loops) inner.values_.erase(l.var);
    for (Loop& l : loops) {
      if (!inner.captures(l.var)) continue;
      const std::string fresh = inner.fresh_.like(l.var, inner.values_);
      inner.values_.insert_or_assign(l.var, Expr::symbol(fresh));
      l.var = fresh;
    }
    return inner;
  }

  Val apply(const Val& v) const {
    if (values_.empty()) return v;
    if (v->kind == ValKind::index) return val::index(dlc::substitute(v->index, values_));
    if (v->kind == ValKind::reduce) {
      std::vector<Loop> loops = v->loops;
      const Scope inner = enter(*this, loops);
      return val::reduce(v->reduce_op(), v->to, std::move(loops), inner.apply(v->args[0]));
    }
    std::vector<Val> args;
    args.reserve(v->args.size());
    for (const Val& a : v->args) args.push_back(apply(a));
    return args == v->args ? v : rebuild(*v, std::move(args));
  }

  void apply(std::vector<Stmt>& body) const {
    for (Stmt& s : body) {
      const Scope inner = enter(*this, s.loops);
      inner.apply(s.body);
      for (Val& i : s.indices) i = inner.apply(i);
      if (s.value) s.value = inner.apply(s.value);
    }
  }

 private:
  bool captures(std::string_view name) const {
    for (const auto& [key, e] : values_)
      if (e.mentions(name)) return true;
    return false;
  }

  Values values_;
  Fresh& fresh_;
};

}  // namespace

std::set<std::string> names_in(const Kernel& k) {
  std::set<std::string> names;
  for (const KernelTensor& t : k.tensors) {
    for (const Expr& d : t.shape) add_names(d, names);
    if (!t.view) continue;
    add_names(t.view->byte_offset, names);
    for (const Expr& s : t.view->byte_strides) add_names(s, names);
  }
  for (const Expr& a : k.assumptions) add_names(a, names);
  add_names(k.body, names);
  return names;
}

Val substitute(const Val& v, const Values& values) {
  Fresh fresh([&](std::set<std::string>& names) { add_names(v, names); });
  return Scope(values, fresh).apply(v);
}

Kernel substitute(const Kernel& k, const Values& values) {
  Kernel r = k;
  for (KernelTensor& t : r.tensors) {
    for (Expr& d : t.shape) d = substitute(d, values);
    if (!t.view) continue;
    t.view->byte_offset = substitute(t.view->byte_offset, values);
    for (Expr& s : t.view->byte_strides) s = substitute(s, values);
  }
  for (Expr& a : r.assumptions) a = substitute(a, values);
  Fresh fresh([&](std::set<std::string>& names) { names.merge(names_in(k)); });
  Scope(values, fresh).apply(r.body);
  return r;
}

}  // namespace dlc
