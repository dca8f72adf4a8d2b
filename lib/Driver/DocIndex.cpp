//===- DocIndex.cpp - what the library has for a task ---------------------===//
//
// Problem: people come with a task (split a model, start a plan in a framework), and pages are by module. Two pages
// lead from the task to the declaration:
//
//   README.md   by the kind of declaration: who wants to split a model needs a strategy
//   flags.md    by the argument of a framework, from the launchers:
//
//     | --tensor-model-parallel-size | `megatron(tp = ...)`                         | Tensor ranks: ... |
//     | --overlap-grad-reduce        | `with gradient_reduction(overlap = true)`    | When gradients ... |
//
// Rule: a parameter that a strategy only forwards is shown as the call of the part to which it goes, as new programs
// write it: the first call of the strategy that gives it as an argument, else the first one under a condition about it.
//
//===----------------------------------------------------------------------===//
#include "DocPages.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::driver;
using llvm::dyn_cast;
using llvm::StringRef;

//===----------------------------------------------------------------------===//
// By task
//===----------------------------------------------------------------------===//

namespace {
struct Task {
  const char *title, *text;
  bool (*isFor)(const ast::Decl &decl, llvm::ArrayRef<DocEntry> all);
  bool isList = false; ///< Names alone, a row for each module.
};
} // namespace

/// A strategy that a framework can run is none, whatever it calls.
static bool isPartDecl(const ast::Decl &decl, llvm::ArrayRef<DocEntry> all) {
  auto *strategy = dyn_cast<ast::StrategyDecl>(&decl);
  return strategy && isPart(*strategy) && llvm::none_of(all, [&](const DocEntry &entry) {
           auto *launcher = dyn_cast<ast::LauncherDecl>(entry.decl);
           return launcher && launcher->strategy.name == decl.name.name;
         });
}

static const Task tasks[] = {
    {"Split a model over ranks", "A job takes one of these as its `strategy`.",
     [](const ast::Decl &decl, llvm::ArrayRef<DocEntry> all) {
       return llvm::isa<ast::StrategyDecl>(&decl) && !isPartDecl(decl, all);
     }},
    {"Add one technique to a strategy", "Parts stand behind `with`, for example `strategy = s(...) with part(...);`.",
     isPartDecl},
    {"Order the work of a pipeline", "A strategy with stages takes one as its schedule.",
     [](const ast::Decl &decl, llvm::ArrayRef<DocEntry>) { return llvm::isa<ast::ScheduleDecl>(&decl); }},
    {"Train or serve a known architecture", "A job takes one of these as its `model`.",
     [](const ast::Decl &decl, llvm::ArrayRef<DocEntry>) {
       auto *module = dyn_cast<ast::ModuleDecl>(&decl);
       return module && module->isModel;
     }},
    {"Take the sizes of a published model", "A config is the argument of a model.",
     [](const ast::Decl &decl, llvm::ArrayRef<DocEntry>) { return llvm::isa<ast::ConfigDecl>(&decl); },
     /*isList=*/true},
    {"Write a model", "Modules and operators, by the file that has them.",
     [](const ast::Decl &decl, llvm::ArrayRef<DocEntry>) {
       auto *module = dyn_cast<ast::ModuleDecl>(&decl);
       return (module && !module->isModel) || llvm::isa<ast::OpDecl>(&decl);
     },
     /*isList=*/true},
    {"Choose an optimizer and element types", "The `optimizer` of a step, and the `precision` of a job.",
     [](const ast::Decl &decl, llvm::ArrayRef<DocEntry>) {
       return llvm::isa<ast::OptimizerDecl, ast::PrecisionDecl>(&decl);
     }},
    {"Know how long a step takes", "The `machine` of a job, and the `runtime` that is its software.",
     [](const ast::Decl &decl, llvm::ArrayRef<DocEntry>) {
       return llvm::isa<ast::MachineDecl, ast::RuntimeDecl>(&decl);
     }},
    {"Start a plan in a framework", "[The table of flags](flags.md) leads from arguments to parameters.",
     [](const ast::Decl &decl, llvm::ArrayRef<DocEntry>) { return llvm::isa<ast::LauncherDecl>(&decl); }},
    {"Compute values of a program", "Functions, such as the lengths of requests or the load of experts.",
     [](const ast::Decl &decl, llvm::ArrayRef<DocEntry>) { return llvm::isa<ast::FnDecl>(&decl); }, /*isList=*/true},
};

/// `[megatron](parallel.md#megatron)`
static std::string makeLink(const DocEntry &entry) {
  std::string name = entry.decl->name.name.str();
  return "[" + name + "](" + getPageName(entry.module) + "#" + StringRef(name).lower() + ")";
}

std::string stage::driver::makeTaskIndex(llvm::ArrayRef<DocModule> modules, llvm::ArrayRef<DocEntry> all) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const Task &task : tasks) {
    os << "\n## " << task.title << "\n\n" << task.text << "\n\n";
    os << (task.isList ? "| module | has |\n|---|---|\n" : "| name | meaning |\n|---|---|\n");
    for (const DocModule &module : modules) {
      std::vector<std::string> links;
      for (const DocEntry &entry : all) {
        if (entry.module != module.name || !task.isFor(*entry.decl, all))
          continue;
        links.push_back(makeLink(entry));
        if (!task.isList)
          os << "| " << links.back() << " | " << makeCell(getFirstSentence(entry.decl->doc)) << " |\n";
      }
      if (task.isList && !links.empty())
        os << "| [" << module.name << "](" << getPageName(module.name) << ") | " << llvm::join(links, ", ") << " |\n";
    }
  }
  return os.str();
}

//===----------------------------------------------------------------------===//
// By the argument of a framework
//===----------------------------------------------------------------------===//

/// The first name in an expression that is a parameter of the strategy. Null: none is.
static const ast::Param *findParam(const ast::Expr *expr, const ast::StrategyDecl &strategy) {
  if (auto *name = dyn_cast<ast::NameExpr>(expr)) {
    auto param = llvm::find_if(strategy.params, [&](const ast::Param &each) { return each.name.name == name->name; });
    return param == strategy.params.end() ? nullptr : &*param;
  }
  if (auto *member = dyn_cast<ast::MemberExpr>(expr))
    return findParam(member->base, strategy);
  if (auto *unary = dyn_cast<ast::UnaryExpr>(expr))
    return findParam(unary->operand, strategy);
  if (auto *binary = dyn_cast<ast::BinaryExpr>(expr)) {
    const ast::Param *left = findParam(binary->left, strategy);
    return left ? left : findParam(binary->right, strategy);
  }
  return nullptr;
}

/// The call of a part to which a parameter goes, and the name that it has there.
static std::string describePart(llvm::ArrayRef<ast::Stmt *> body, const ast::Param &param,
                                const ast::StrategyDecl &strategy, const std::string &value) {
  for (const ast::Stmt *stmt : body)
    if (auto *expr = dyn_cast<ast::ExprStmt>(stmt))
      if (auto *call = dyn_cast<ast::CallExpr>(expr->value))
        for (const ast::Argument &argument : call->args)
          if (auto *name = dyn_cast<ast::NameExpr>(argument.value))
            if (argument.name && name->name == param.name.name)
              return "with " + ast::textOf(call->callee) + "(" + argument.name.name.str() + " = " + value + ")";
  for (const ast::Stmt *stmt : body) {
    auto *branch = dyn_cast<ast::IfStmt>(stmt);
    if (!branch)
      continue;
    std::string inside = describePart(branch->thenBody, param, strategy, value);
    if (!inside.empty())
      return inside;
    auto *negated = dyn_cast<ast::UnaryExpr>(branch->condition);
    bool isTaken = value != (negated ? "true" : "false");
    if (auto *compared = dyn_cast<ast::BinaryExpr>(branch->condition); compared && compared->op == ast::BinaryOp::Equal)
      isTaken = value == ast::textOf(compared->right);
    if (isTaken && findParam(branch->condition, strategy) == &param && !branch->thenBody.empty())
      if (auto *expr = dyn_cast<ast::ExprStmt>(branch->thenBody.front()))
        return "with " + ast::textOf(expr->value);
  }
  return "";
}

/// The value that a flag stands for, `true`; empty for one that only a condition describes.
static std::string findValue(const ast::FlagStmt &flag) {
  if (flag.value)
    return "...";
  if (llvm::isa<ast::NameExpr>(flag.condition))
    return "true";
  if (auto *unary = dyn_cast<ast::UnaryExpr>(flag.condition))
    return unary->op == ast::UnaryOp::Not ? "false" : "";
  auto *binary = dyn_cast<ast::BinaryExpr>(flag.condition);
  if (binary && (binary->op == ast::BinaryOp::Equal || binary->op == ast::BinaryOp::GreaterEqual))
    return ast::textOf(binary->right); // of several values that mean the flag the least one
  return "";
}

static void printFlag(llvm::raw_ostream &os, const ast::FlagStmt &flag, const ast::StrategyDecl &strategy) {
  const ast::Param *param = findParam(flag.value ? flag.value : flag.condition, strategy);
  std::string value = findValue(flag), use;
  if (param && !value.empty() && param->isForwarded)
    use = describePart(strategy.body, *param, strategy, value);
  if (param && !value.empty() && use.empty())
    use = strategy.name.name.str() + "(" + param->name.name.str() + " = " + value + ")";
  const ast::Expr *subject = flag.value ? flag.value : flag.condition;
  if (auto *binary = dyn_cast<ast::BinaryExpr>(subject))
    subject = binary->left;
  bool isOfJob = !param && llvm::isa<ast::MemberExpr>(subject);
  if (isOfJob && !value.empty())
    use = ast::textOf(subject) + " = " + value;
  os << "| `" << makeCell(flag.flags.front()->text.str()) << "` | `" << makeCell(use.empty() ? describe(flag) : use)
     << "` | ";
  if (flag.value && !isOfJob && !llvm::isa<ast::NameExpr>(flag.value))
    os << "The flag is `" << makeCell(ast::textOf(flag.value)) << "`. ";
  std::string doc = llvm::join(flag.doc, " ");
  if (param && !doc.empty())
    doc += " Parameter `" + param->name.name.str() + "`: ";
  if (param)
    doc += llvm::join(param->doc, " ");
  os << makeCell(doc) << " |\n";
}

std::string stage::driver::makeFlagPage(llvm::ArrayRef<DocEntry> all) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "# From the flags of frameworks to parameters\n\n"
        "Written by `stagec doc --all --markdown=docs/library` from the [launchers](launchers.md) of the library. Each "
        "says a strategy\nas arguments of one framework. For example, a plan with eight tensor ranks is `tp = 8`.\n";
  for (const DocEntry &entry : all) {
    auto *launcher = dyn_cast<ast::LauncherDecl>(entry.decl);
    if (!launcher)
      continue;
    auto found = llvm::find_if(all, [&](const DocEntry &other) {
      return llvm::isa<ast::StrategyDecl>(other.decl) && other.decl->name.name == launcher->strategy.name;
    });
    if (found == all.end())
      continue;
    os << "\n## " << launcher->name.name << "\n\n"
       << llvm::join(launcher->doc, "\n") << "\n\nStrategy: " << makeLink(*found)
       << "\n\n| flag | in a job | meaning |\n|---|---|---|\n";
    for (const ast::FlagStmt *flag : launcher->flags)
      if (!flag->isIgnored())
        printFlag(os, *flag, *llvm::cast<ast::StrategyDecl>(found->decl));
    for (const ast::FlagStmt *flag : launcher->flags)
      for (const ast::StringExpr *name : flag->isIgnored() ? llvm::ArrayRef(flag->flags) : llvm::None)
        os << "| `" << makeCell(name->text.str()) << "` | changes no plan | " << makeCell(llvm::join(flag->doc, " "))
           << " |\n";
  }
  return os.str();
}
