// dlc explain: where every node runs, which rule decided, and why not elsewhere.
#include <filesystem>

#include "tools/dlc/explain.h"
#include "tools/dlc/json.h"

namespace dlc::cli {

namespace {

Result<int> explain(ModelOptions& o, Context& cx) {
  o.despite_problems = true;
  DLC_TRY(const CompiledModel model, load_or_build(o, cx));
  const Json said = object_of(model.explanation);
  if (said.empty())
    return fail({o.file, 0, 0, {}}, "the artifact does not say where its nodes run", "compile the model again");
  Json result{{"model", o.file}, {"hardware", model.hardware_name}};
  result.update(said);
  cx.print(result, explanation_text(said));
  return kOk;
}

}  // namespace

void add_explain(CLI::App& app, Context& cx) {
  auto o = std::make_shared<ModelOptions>();
  CLI::App* sub = add_command(app, cx, "explain", "Say where every node runs, and why");
  add_model_options(*sub, *o);
  sub->callback([o, &cx] { cx.action = [o, &cx] { return explain(*o, cx); }; });
}

}  // namespace dlc::cli
