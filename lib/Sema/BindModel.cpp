//===- BindModel.cpp - a value for each parameter of the model ------------===//
#include "BindModel.h"
#include "Extends.h"
#include "JobWords.h"
#include "Meanings.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Suggestions.h"
#include "stage/Symbolic/SizeMessages.h"
#include <map>

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

namespace {
class ModelBinder : public ParamBinder {
public:
  ModelBinder(Evaluator &evaluator, const ast::ModuleDecl &model, SMRange callRange, SizeBinding &binding,
              const BoundStrategy &strategy, bool namesConstants, StringRef prefix)
      : ParamBinder(evaluator, model, model.params, callRange), model(model), binding(binding), strategy(strategy),
        namesConstants(namesConstants), prefix(prefix) {}

  bool readArguments(const JobCall &call);

private:
  bool readConfig(const ast::ConfigDecl &config, SMRange range);
  bool finish(size_t index) override;
  CTValue nameElements(StringRef name, const CTValue &list);
  bool isPadded(StringRef name) const;

  const ast::ModuleDecl &model;
  SizeBinding &binding;
  const BoundStrategy &strategy;
  const bool namesConstants;
  const StringRef prefix;
};
} // namespace

/// A config is what its entries give; what the call names replaces them.
bool ModelBinder::readArguments(const JobCall &call) {
  bool ok = true, hasConfig = false;
  std::vector<JobArgument> named;
  for (const JobArgument &argument : call.arguments) {
    if (argument.name) {
      named.push_back(argument);
      continue;
    }
    std::optional<CTValue> value =
        argument.expr ? evaluator.evaluate(argument.expr, Environment(*call.file)) : std::optional(argument.value);
    auto *config = value && value->isDecl() ? dyn_cast<ast::ConfigDecl>(value->getDecl()) : nullptr;
    if (value && (!config || hasConfig) && ok) {
      DiagnosticBuilder error = diags.report(argument.range.Start, diag::ConfigExpected).range(argument.range)
                                << model.name.name;
      if (std::string text = getText(argument.range); StringRef(text).startswith("\"")) {
        std::string spelled = StringRef(text).trim('"').rsplit('/').second.lower();
        spelled = spelled.empty() ? StringRef(text).trim('"').lower() : spelled;
        for (char &letter : spelled)
          letter = letter == '-' || letter == '.' || letter == ' ' ? '_' : letter;
        std::vector<Candidate> configs;
        for (const ast::File *file : evaluator.getProgram().getFiles())
          for (const ast::Decl *decl : file->decls)
            if (llvm::isa<ast::ConfigDecl>(decl))
              configs.push_back({decl->name.name, SMLoc()});
        const Candidate *nearest = findNearest(spelled, configs);
        bool isKnown = llvm::any_of(configs, [&](const Candidate &each) { return each.name == spelled; });
        error.note(SMLoc(), diag::FormInstead)
            << (model.name.name + "(" + (nearest && !isKnown ? nearest->name.str() : spelled) + ")").str();
      }
      // `Llama(8, 4096, 32)`: values in the order of the parameters.
      std::string all;
      for (size_t i = 0; i < call.arguments.size() && i < model.params.size() && !hasConfig; ++i) {
        const JobArgument &each = call.arguments[i];
        bool isNumber = !each.name && each.expr && llvm::isa<ast::NumberExpr>(each.expr);
        if (i == 0 && !isNumber)
          break;
        all += (i ? ", " : "") + (each.name ? "" : model.params[i].name.name.str() + " = ") + getText(each.range);
      }
      if (!all.empty())
        error.note(SMLoc(), diag::FormInstead) << model.name.name.str() + "(" + all + ")";
    }
    if (!config || hasConfig)
      config = nullptr;
    hasConfig |= config != nullptr;
    this->config = config ? config : this->config;
    ok &= config && readConfig(*config, argument.range);
  }
  return give(named, *call.file) && ok;
}

bool ModelBinder::readConfig(const ast::ConfigDecl &given, SMRange range) {
  const Program &program = evaluator.getProgram();
  for (const ast::ConfigDecl *link : getChain(program, given)) {
    if (program.lookup(program.getFile(*link), link->model.name) != &model) {
      diags.report(range.Start, diag::ConfigOfOtherModel)
          .range(range)
          .with(link->name.name, link->model.name, model.name.name)
          .note(link->model.loc(), diag::PreviousHere)
          .with(link->name.name);
      return false;
    }
    for (const ast::EntryStmt *entry : link->entries)
      give(*find(entry->name.name), entry->value, program.getFile(*link));
  }
  return true;
}

/// Sizes of a list become symbols `widths.0`, `widths.2`: equal ones are one, as the program may rely on it.
CTValue ModelBinder::nameElements(StringRef name, const CTValue &list) {
  std::vector<CTValue> elements(list.getElements());
  std::map<int64_t, CTValue> known;
  for (size_t i = 0; i != elements.size(); ++i) {
    std::optional<int64_t> number = elements[i].getInteger();
    if (!number || *number < 2)
      continue;
    auto [it, isNew] = known.try_emplace(*number);
    if (isNew) {
      std::string symbol = (prefix + name + "." + llvm::Twine(i)).str();
      binding.bind(symbol, *number);
      stage::setOrigin(evaluator.getSizes(), symbol, list.getOrigin());
      it->second = CTValue::size(evaluator.getSizes().symbol(symbol));
    }
    elements[i] = it->second;
  }
  CTValue named = CTValue::list(std::move(elements));
  named.setOrigin(list.getOrigin());
  return named;
}

bool ModelBinder::isPadded(StringRef name) const {
  return prefix.empty() && llvm::any_of(strategy.rules, [&](const BoundRule &rule) {
           auto *pad = dyn_cast<ast::PadStmt>(rule.stmt);
           return pad && pad->dim.name == name;
         });
}

/// Checks the value and, if it is an integer that the job chose or that the strategy changes, makes it a symbol.
bool ModelBinder::finish(size_t index) {
  Slot &slot = slots[index];
  const ast::Param &param = params[index];
  std::string what = ("'" + param.name.name + "'").str();
  std::optional<int64_t> constant = slot.value.getInteger();
  if (namesConstants && slot.value.getKind() == CTValue::Kind::List)
    slot.value = nameElements(param.name.name, slot.value);
  // Defaults of 0 and 1 switch something on or off.
  if (!slot.value.isSize() ||
      (constant && !slot.isGiven && !(namesConstants && *constant > 1) && !isPadded(param.name.name)))
    return true;
  std::optional<int64_t> number =
      constant ? constant : evaluator.getValue(slot.value.getSize(evaluator.getSizes()), slot.range, what);
  if (!number)
    return false;
  if (*number < 1 && param.scalarKind.name == "int")
    return true;
  if (*number < 1) {
    DiagnosticBuilder error =
        diags.report(slot.range.Start, diag::ValueNotPositive).range(slot.range).with(what, *number);
    error.note(param.name.loc(), diag::PreviousHere) << param.name.name;
    setOrigin(error, slot.value.getOrigin());
    return false;
  }
  if (constant) {
    std::string symbol = (prefix + param.name.name).str();
    SMRange origin = slot.value.getOrigin();
    binding.bind(symbol, *constant);
    stage::setOrigin(evaluator.getSizes(), symbol, origin);
    slot.value = CTValue::size(evaluator.getSizes().symbol(symbol));
    slot.value.setOrigin(origin);
  }
  return true;
}

std::optional<std::vector<NamedValue>> stage::sema::bindModel(Evaluator &evaluator, const JobCall &call,
                                                              SMRange callRange, const Overrides *overrides,
                                                              SizeBinding &binding, const BoundStrategy &strategy,
                                                              bool namesConstants, StringRef prefix) {
  ModelBinder binder(evaluator, *llvm::cast<ast::ModuleDecl>(call.callee.getDecl()), callRange, binding, strategy,
                     namesConstants, prefix);
  if (!binder.readArguments(call))
    return std::nullopt;
  if (overrides)
    binder.give(*overrides, configWord);
  return binder.bindAll() ? std::optional(binder.take()) : std::nullopt;
}
