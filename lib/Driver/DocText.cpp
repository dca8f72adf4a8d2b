//===- DocText.cpp - what a declaration says of itself --------------------===//
//
// Problem: the declaration of an operator or strategy has all that a reader wants to know, but not in the form in which
// it is used.
//
//   op rms_norm(x: [..., d], g: [d]) -> [..., d]        import std.nn (rms_norm);
//                                                       let y = rms_norm(x, g);
//
// Rule: an example gives each parameter without a default. A size gets a small number, and any other parameter its own
// name. What every file sees is not imported.
//
//===----------------------------------------------------------------------===//
#include "DocText.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;
using namespace stage::driver;
using llvm::StringRef;

StringRef stage::driver::getKeyword(const ast::Decl &decl) {
  switch (decl.kind) {
  case ast::NodeKind::OpDecl:
    return "op";
  case ast::NodeKind::ModuleDecl:
    return llvm::cast<ast::ModuleDecl>(&decl)->isModel ? "model" : "module";
  case ast::NodeKind::StrategyDecl:
    return "strategy";
  case ast::NodeKind::ScheduleDecl:
    return "schedule";
  case ast::NodeKind::ConfigDecl:
    return "config";
  case ast::NodeKind::JobDecl:
    return "job";
  case ast::NodeKind::PrecisionDecl:
    return "precision";
  case ast::NodeKind::OptimizerDecl:
    return "optimizer";
  case ast::NodeKind::LauncherDecl:
    return "launcher";
  case ast::NodeKind::MachineDecl:
    return "machine";
  case ast::NodeKind::RuntimeDecl:
    return "runtime";
  default:
    return "fn";
  }
}

static std::string getText(SMRange range) { return std::string(range.Start.getPointer(), range.End.getPointer()); }

std::string stage::driver::getSignature(const ast::Decl &decl) {
  std::string text = decl.name.name.str();
  if (auto *config = llvm::dyn_cast<ast::ConfigDecl>(&decl))
    return text + " for " + config->model.name.str();
  if (auto *launcher = llvm::dyn_cast<ast::LauncherDecl>(&decl))
    return text + " for " + launcher->strategy.name.str();
  llvm::ArrayRef<ast::Param> params = ast::getParams(decl);
  std::vector<std::string> names, results;
  for (const ast::Param &param : params)
    if (!param.isForwarded)
      names.push_back(param.name.name.str());
  if (auto *op = llvm::dyn_cast<ast::OpDecl>(&decl))
    for (const ast::OpDecl::Result &result : op->results)
      results.push_back((result.name ? result.name.name.str() + ": " : "") + getText(result.type->range));
  else if (auto *module = llvm::dyn_cast<ast::ModuleDecl>(&decl))
    for (const ast::TensorType *result : module->results)
      results.push_back(getText(result->range));
  bool isCalled = !llvm::isa<ast::JobDecl, ast::PrecisionDecl, ast::MachineDecl, ast::RuntimeDecl>(&decl);
  if (isCalled)
    text += "(" + llvm::join(names, ", ") + ")";
  if (results.size() == 1)
    text += " -> " + results.front();
  else if (!results.empty())
    text += " -> (" + llvm::join(results, ", ") + ")";
  return text;
}

std::string stage::driver::describe(const ast::Param &param) {
  std::string text = param.name.name.str();
  if (param.tensor)
    text += ": " + getText(param.tensor->range);
  else if (param.scalarKind)
    text += (": " + param.scalarKind.name + (param.sizeIndex ? " " + param.sizeIndex.name.str() : "")).str();
  if (param.legal)
    text += " in " + ast::textOf(param.legal);
  if (param.defaultValue)
    text += " = " + ast::textOf(param.defaultValue);
  return text;
}

std::string stage::driver::describe(const ast::FlagStmt &flag) {
  if (flag.isIgnored())
    return "ignored";
  std::string text = flag.value ? ast::textOf(flag.value) : "";
  if (flag.condition)
    text += (flag.value ? " if " : "") + ast::textOf(flag.condition);
  return text;
}

std::string stage::driver::getModuleText(const ast::File &file, StringRef module) {
  std::string text = llvm::join(file.doc, "\n");
  if (StringRef(text).startswith((module + ": ").str()))
    text.erase(0, module.size() + 2);
  if (!text.empty())
    text[0] = llvm::toUpper(text[0]);
  return text;
}

std::string stage::driver::getFirstSentence(llvm::ArrayRef<StringRef> doc) {
  std::string text = llvm::join(doc, " ");
  for (size_t stop = text.find(". "); stop != std::string::npos; stop = text.find(". ", stop + 1))
    if (!StringRef(text).take_front(stop).endswith("et al"))
      return text.substr(0, stop + 1);
  return text;
}

static bool hasMesh(llvm::ArrayRef<ast::Stmt *> body) {
  return llvm::any_of(body, [](const ast::Stmt *stmt) {
    auto *branch = llvm::dyn_cast<ast::IfStmt>(stmt);
    return llvm::isa<ast::MeshStmt>(stmt) || (branch && (hasMesh(branch->thenBody) || hasMesh(branch->elseBody)));
  });
}

bool stage::driver::isPart(const ast::StrategyDecl &strategy) {
  return llvm::any_of(strategy.params, [](const ast::Param &param) { return param.scalarKind.name == "axes"; }) ||
         (!hasMesh(strategy.body) && !strategy.body.empty());
}

/// `f(x, dp = 8)`: what has no default. `skipped`: parameters that are not given, as the first ones of a schedule.
static std::string makeCall(const ast::Decl &decl, size_t skipped = 0) {
  std::vector<std::string> arguments;
  bool isPositional = llvm::isa<ast::OpDecl>(&decl) || llvm::isa<ast::FnDecl>(&decl);
  for (const ast::Param &param : ast::getParams(decl).drop_front(skipped)) {
    StringRef name = param.name.name;
    if (param.defaultValue)
      continue;
    bool isNamed = !param.tensor && !isPositional && param.scalarKind.name != "axes";
    bool isSize = llvm::isa<ast::StrategyDecl, ast::ScheduleDecl>(&decl) && param.scalarKind.name != "axes";
    arguments.push_back(isNamed ? (name + " = " + (isSize ? "2" : name)).str() : name.str());
  }
  return decl.name.name.str() + "(" + llvm::join(arguments, ", ") + ")";
}

std::vector<std::string> stage::driver::getExample(const DocEntry &entry, llvm::ArrayRef<DocEntry> all) {
  const ast::Decl &decl = *entry.decl;
  std::string name = decl.name.name.str(), use;
  std::vector<std::string> imported = {name};
  if (llvm::isa<ast::LauncherDecl, ast::JobDecl>(&decl))
    return {};
  if (llvm::isa<ast::OpDecl>(&decl)) {
    use = "let y = " + makeCall(decl) + ";";
  } else if (auto *module = llvm::dyn_cast<ast::ModuleDecl>(&decl)) {
    auto config = llvm::find_if(all, [&](const DocEntry &other) {
      auto *known = llvm::dyn_cast<ast::ConfigDecl>(other.decl);
      return known && known->model.name == name && other.module == entry.module;
    });
    bool hasConfig = module->isModel && config != all.end();
    if (hasConfig)
      imported.push_back(config->decl->name.name.str());
    use = module->isModel ? "model = " + (hasConfig ? name + "(" + imported.back() + ")" : makeCall(decl)) + ";"
                          : "let y = " + makeCall(decl) + ";";
  } else if (auto *of = llvm::dyn_cast<ast::ConfigDecl>(&decl)) {
    use = "model = " + of->model.name.str() + "(" + name + ");";
    auto model = llvm::find_if(all, [&](const DocEntry &other) {
      return llvm::isa<ast::ModuleDecl>(other.decl) && other.decl->name.name == of->model.name;
    });
    if (model != all.end() && model->module == entry.module)
      imported.push_back(of->model.name.str());
    else if (model != all.end())
      return {"import " + model->module + " (" + of->model.name.str() + ");",
              "import " + entry.module + " (" + name + ");", use};
  } else if (auto *strategy = llvm::dyn_cast<ast::StrategyDecl>(&decl)) {
    if (isPart(*strategy))
      return {makeCall(decl) + ";", "strategy = s(...) with " + makeCall(decl) + ";"};
    use = "strategy = " + makeCall(decl) + ";";
  } else if (llvm::isa<ast::ScheduleDecl>(&decl)) {
    std::string call = makeCall(decl, 3);
    llvm::StringRef(call).endswith("()") ? call.resize(call.size() - 2) : void();
    use = "pipeline layers over pp { schedule = " + call + "; }";
  } else if (llvm::isa<ast::MachineDecl, ast::RuntimeDecl>(&decl)) {
    use = getKeyword(decl).str() + " = " + name + ";";
  } else if (llvm::isa<ast::PrecisionDecl>(&decl)) {
    use = "precision = " + name + ";";
  } else if (llvm::isa<ast::OptimizerDecl>(&decl)) {
    use = "step = train(B = 512, S = 4Ki, optimizer = " + name + ");";
  } else {
    use = "let n = " + makeCall(decl) + ";";
  }
  if (entry.isSeen || !StringRef(entry.module).startswith("std."))
    return {use};
  return {"import " + entry.module + " (" + llvm::join(imported, ", ") + ");", use};
}

std::string stage::driver::describeKernels(const ast::KernelStmt &kernels) {
  ast::KernelStmt plain = kernels;
  plain.doc = {};
  return ast::textOf(&plain);
}
