//===- CheckLaunchers.cpp - declarations of launchers ---------------------===//
//
// Problem: a launcher is read in both directions, and a declaration that can be read in one only fails when somebody
// uses the other.
//
//   "--world-size" = tp * pp;                      one number does not say two parameters
//   "--level" = zero; "--shard" if zero >= 1;      `--level 0 --shard` would contradict itself
//   "--shard" if zero >= 5;                        no legal value is written so
//
// Algorithm:
//
//   1. Each entry becomes a LauncherFlag: the form of its value (p, p * c, p / c) and of its condition (p, !p, p == v,
//      p != v, p >= n, p > n) of one parameter.
//   2. Where all entries have a form, the flags of each parameter are tried on its legal values, or, where these are
//      not listed, on the values that the conditions name, their neighbours and one that nothing names. Each condition
//      must hold of some of them, that of a flag without a value not of all, and no two flags may be written for the
//      same value.
//
// With that, flags -> values -> flags is the identity by the way in which values are read (Launchers.h).
//
// Limits: what two conditions have in common is found by trying values, which is exact for comparisons with constants.
//
//===----------------------------------------------------------------------===//
#include "JobWords.h"
#include "NameChecker.h"
#include "stage/Sema/Launchers.h"
#include "stage/Sema/Walk.h"

using namespace stage;
using namespace stage::sema;
using ast::BinaryOp;
using ast::textOf;
using llvm::dyn_cast;
using Scale = LauncherFlag::Scale;
using Test = LauncherFlag::Test;

namespace stage::sema {
class LauncherChecker : public NameChecker {
public:
  LauncherChecker(const Program &program, const ast::LauncherDecl &decl)
      : NameChecker(program, program.getFile(decl)), decl(decl), silent(program, sizes, binding),
        loud(program, sizes, binding, obligations, diags), env(program.getFile(decl)) {}

  std::optional<Launcher> run() {
    unsigned before = diags.getNumErrors();
    auto *strategy = expectDecl<ast::StrategyDecl>(decl.strategy, "strategy");
    if (!strategy)
      return std::nullopt;
    Launcher result(program, decl, *strategy);
    launcher = &result;
    for (const ast::FlagStmt *stmt : decl.flags)
      addFlags(*stmt);
    if (diags.getNumErrors() == before)
      for (const LauncherFlag &flag : result.flags)
        checkFlag(flag);
    if (diags.getNumErrors() != before)
      return std::nullopt;
    return result;
  }

private:
  //===--- Forms of entries -----------------------------------------------===//

  void addFlags(const ast::FlagStmt &stmt) {
    LauncherFlag said;
    if (stmt.value && !checkValue(stmt.value, said))
      return;
    std::optional<unsigned> valueParam = said.param;
    if (stmt.condition && !checkCondition(stmt.condition, said))
      return;
    if (valueParam && said.param != valueParam) {
      reportTwo(stmt.condition, launcher->params[*valueParam]->name.name, launcher->getParam(said).name.name);
      return;
    }
    if (!said.argument.empty() && !checkArgument(stmt, said))
      return;
    for (const ast::StringExpr *text : stmt.flags) {
      LauncherFlag flag = said;
      flag.stmt = &stmt;
      flag.text = text;
      flag.isElement = text->text.endswith("]") && text->text.contains('[') && !text->text.contains('=');
      auto [key, value] = text->text.split(flag.isElement ? '[' : '=');
      flag.key = key;
      if (flag.isElement)
        value = value.drop_back();
      if (key.size() != text->text.size())
        flag.value = value;
      if (checkText(flag))
        launcher->flags.push_back(flag);
    }
  }

  bool checkText(const LauncherFlag &flag) {
    StringRef text = flag.text->text;
    SMRange range = flag.text->range;
    bool isEmpty = flag.key.empty() || (flag.value && flag.value->empty());
    if (isEmpty || text.find_first_of(" \t\r\n") != StringRef::npos) {
      diags.report(range.Start, diag::BadFlag).range(range) << text;
      return false;
    }
    bool isPlace = flag.isElement && flag.value->find_first_not_of("0123456789") == StringRef::npos;
    if (flag.value && flag.scale != Scale::None && !isPlace) {
      diags.report(range.Start, diag::FlagValueTwice).range(range) << text << textOf(flag.stmt->value) << flag.key;
      return false;
    }
    for (const LauncherFlag &other : launcher->flags) {
      if (other.key != flag.key)
        continue;
      // Values of one flag are about one parameter, or about none; elements of its list may be about several.
      bool isOther = other.value && flag.value && *other.value != *flag.value && other.isElement == flag.isElement;
      if (isOther && (flag.isElement || !other.param || !flag.param || other.param == flag.param))
        continue;
      DiagnosticBuilder error = diags.report(range.Start, isOther ? diag::FlagOfOthers : diag::FlagTwice).range(range)
                                << text << decl.name.name;
      error.note(other.text->loc(), diag::PreviousHere) << other.text->text;
      return false;
    }
    return true;
  }

  std::optional<unsigned> findParam(StringRef name) {
    ArrayRef<ast::Param> params = launcher->strategy->params;
    auto found = llvm::find_if(params, [&](const ast::Param &param) { return param.name.name == name; });
    return found == params.end() ? std::nullopt : std::optional<unsigned>(found - params.begin());
  }
  std::optional<unsigned> findParam(const ast::Expr *expr) {
    if (auto *member = dyn_cast<ast::MemberExpr>(expr))
      return findJobParam(*member);
    auto *name = dyn_cast<ast::NameExpr>(expr);
    return name ? findParam(name->name) : std::nullopt;
  }

  /// `train.B`, `job.precision`, `Llama.L`: a parameter of the launcher alone.
  std::optional<unsigned> findJobParam(const ast::MemberExpr &expr) {
    auto *owner = dyn_cast<ast::NameExpr>(expr.base);
    if (!owner || findParam(owner->name))
      return std::nullopt;
    StringRef member = expr.member.name;
    std::string qualified = (owner->name + "." + member).str();
    auto known =
        llvm::find_if(launcher->params, [&](const ast::Param *param) { return param->name.name == qualified; });
    if (known != launcher->params.end())
      return known - launcher->params.begin();
    ast::Param param = ast::Param();
    if (owner->name == trainWord || owner->name == inferWord) {
      if (member != optimizerWord && member != clipWord)
        param.scalarKind.name = "size";
    } else if (owner->name == jobWord) {
      if (member == gpusWord)
        param.scalarKind.name = "size";
      else if (member != configWord && member != precisionWord && member != machineWord && member != runtimeWord)
        return std::nullopt;
    } else {
      auto *model = llvm::dyn_cast_or_null<ast::ModuleDecl>(program.lookup(program.getFile(decl), owner->name));
      auto *found =
          model ? llvm::find_if(model->params, [&](auto &each) { return each.name.name == member; }) : nullptr;
      if (!model || found == model->params.end() || found->tensor)
        return std::nullopt;
      param.scalarKind.name = found->scalarKind ? found->scalarKind.name : "size";
    }
    ast::ASTContext &context = program.getContext();
    param.name = {context.copy(StringRef(qualified)), expr.range};
    launcher->params.push_back(context.copy(ArrayRef<ast::Param>(param)).data());
    return launcher->params.size() - 1;
  }

  bool checkValue(const ast::Expr *value, LauncherFlag &flag) {
    auto *binary = dyn_cast<ast::BinaryExpr>(value);
    bool isScaled = binary && (binary->op == BinaryOp::Mul || binary->op == BinaryOp::Div);
    flag.param = findParam(isScaled ? binary->left : value);
    auto *member = dyn_cast<ast::MemberExpr>(value);
    auto *base = member ? dyn_cast<ast::NameExpr>(member->base) : nullptr;
    if (!flag.param && base && (flag.param = findParam(base->name))) {
      flag.argument = member->member.name;
      flag.scale = Scale::Plain;
      return true;
    }
    if (!flag.param || (isScaled && !readFactor(binary->right, flag)))
      return reportForm(value, diag::FlagValueForm);
    flag.scale = !isScaled ? Scale::Plain : binary->op == BinaryOp::Mul ? Scale::Times : Scale::Over;
    if (flag.factor.num == 0) {
      diags.report(value->loc(), diag::FlagFactor).range(value->range)
          << textOf(value) << launcher->getParam(flag).name.name;
      return false;
    }
    return checkUnit(value, flag);
  }

  /// `order.v` is a number only where `order` is known to be something that has a `v`.
  bool checkArgument(const ast::FlagStmt &stmt, const LauncherFlag &flag) {
    std::optional<CTValue> value = flag.test == Test::Equals ? silent.get().evaluate(flag.constant, env) : std::nullopt;
    auto *schedule = value && value->isDecl() ? dyn_cast<ast::ScheduleDecl>(value->getDecl()) : nullptr;
    if (schedule && llvm::any_of(schedule->params, [&](auto &each) { return each.name.name == flag.argument; }))
      return true;
    diags.report(stmt.value->loc(), diag::FlagValueForm).range(stmt.value->range) << textOf(stmt.value);
    return false;
  }

  static bool readFactor(const ast::Expr *expr, LauncherFlag &flag) {
    if (auto *quantity = dyn_cast<ast::QuantityExpr>(expr)) {
      flag.factor = quantity->value;
      flag.unit = quantity->dimension;
      return true;
    }
    auto *number = dyn_cast<ast::NumberExpr>(expr);
    if (!number || !number->isExact)
      return false;
    std::optional<Rational> exact = Rational::make(number->value.num, number->value.den);
    flag.factor = exact.value_or(Rational::integer(0));
    return exact.has_value();
  }

  /// A flag is a plain number, and bytes divided by 4 are none.
  bool checkUnit(const ast::Expr *value, const LauncherFlag &flag) {
    const ast::Param &param = launcher->getParam(flag);
    StringRef kind = param.scalarKind.name, name = param.name.name;
    bool isAmount = kind == "bytes" || kind == "time" || kind == "rate";
    Dimension wanted = kind == "bytes"  ? Dimension::ofBytes()
                       : kind == "time" ? Dimension::ofTime()
                                        : Dimension::ofBytesPerSecond();
    std::string form;
    if (isAmount) {
      bool isRate = kind == "rate" && flag.unit.seconds == -1;
      if (flag.scale == Scale::Over && (flag.unit == wanted || isRate))
        return true;
      form = (name + " / " + (kind == "bytes" ? "4B" : kind == "time" ? "1us" : "1GB/s")).str();
    } else {
      // A parameter without a kind may have an amount.
      bool mayDivide = kind.empty() && flag.scale == Scale::Over;
      if ((flag.unit.isNumber() || mayDivide) && (kind != "bool" || flag.scale == Scale::Plain))
        return true;
      form = name.str();
    }
    diags.report(value->loc(), diag::FlagUnit).range(value->range) << textOf(value) << form;
    return false;
  }

  bool checkCondition(const ast::Expr *condition, LauncherFlag &flag) {
    auto *unary = dyn_cast<ast::UnaryExpr>(condition);
    auto *binary = dyn_cast<ast::BinaryExpr>(condition);
    const ast::Expr *subject = condition;
    flag.test = Test::IsTrue;
    if (unary && unary->op == ast::UnaryOp::Not) {
      flag.test = Test::IsFalse;
      subject = unary->operand;
    } else if (binary) {
      flag.test = binary->op == BinaryOp::Equal          ? Test::Equals
                  : binary->op == BinaryOp::NotEqual     ? Test::Differs
                  : binary->op == BinaryOp::GreaterEqual ? Test::AtLeast
                  : binary->op == BinaryOp::Greater      ? Test::Above
                                                         : Test::Always;
      subject = binary->left;
      flag.constant = binary->right;
    }
    std::optional<unsigned> param = findParam(subject);
    if (!param || flag.test == Test::Always || (flag.constant && !isConstant(flag)))
      return reportForm(condition, diag::FlagConditionForm);
    flag.param = param;
    return flag.constant ? checkConstant(flag) : checkTruth(condition, flag);
  }

  /// Orders have numbers on their right, equalities words and truth values as well.
  bool isConstant(const LauncherFlag &flag) {
    const ast::Expr *expr = flag.constant;
    if (llvm::isa<ast::NumberExpr, ast::QuantityExpr>(expr))
      return true;
    return (flag.test == Test::Equals || flag.test == Test::Differs) && llvm::isa<ast::NameExpr, ast::BoolExpr>(expr) &&
           !findParam(expr);
  }

  bool checkConstant(const LauncherFlag &flag) {
    std::optional<CTValue> value = loud.evaluate(flag.constant, env);
    if (!value)
      return false;
    const ast::Param &param = launcher->getParam(flag);
    SMRange range = flag.constant->range;
    if (flag.test == Test::Equals)
      return loud.convert(*value, param, Environment(program.getFile(*launcher->strategy)), range).has_value();
    return value->isNone() || loud.convert(*value, param.scalarKind, range, "'" + param.name.name + "'");
  }

  bool checkTruth(const ast::Expr *condition, const LauncherFlag &flag) {
    const ast::Param &param = launcher->getParam(flag);
    std::optional<CTValue> value =
        launcher->getDefault(silent.get(), *flag.param, Environment(program.getFile(*launcher->strategy)));
    bool isTruth = param.scalarKind ? param.scalarKind.name == "bool" : !value || value->isBool() || value->isNone();
    if (!isTruth)
      diags.report(condition->loc(), diag::FlagNoTruth).range(condition->range) << param.name.name;
    return isTruth;
  }

  /// Why an expression has none of the forms; false.
  bool reportForm(const ast::Expr *expr, diag::Message<diag::Text> form) {
    llvm::SmallVector<const ast::NameExpr *, 4> params, others;
    walk(expr, [&](const ast::Expr *part) {
      if (auto *name = dyn_cast<ast::NameExpr>(part))
        (findParam(name) ? params : others).push_back(name);
    });
    auto *other = llvm::find_if(params, [&](auto *name) { return name->name != params.front()->name; });
    auto *member = dyn_cast<ast::MemberExpr>(expr);
    if (auto *binary = dyn_cast<ast::BinaryExpr>(expr); binary && !member)
      member = dyn_cast<ast::MemberExpr>(binary->left);
    if (member && params.empty()) {
      diags.report(member->loc(), diag::UnknownArgument).range(member->range)
          << launcher->strategy->name.name << textOf(member);
    } else if (other != params.end()) {
      reportTwo(expr, params.front()->name, (*other)->name);
    } else if (!params.empty()) {
      diags.report(expr->loc(), form).range(expr->range) << textOf(expr);
    } else if (others.empty()) {
      diags.report(expr->loc(), diag::FlagOfNothing).range(expr->range) << textOf(expr);
    } else {
      std::vector<Candidate> names;
      for (const ast::Param &param : launcher->strategy->params)
        names.push_back({param.name.name, param.name.loc()});
      DiagnosticBuilder error = diags.report(others.front()->loc(), diag::UnknownArgument)
                                << launcher->strategy->name.name << others.front()->name;
      suggestNearest(error, others.front()->name, others.front()->range, names);
    }
    return false;
  }

  void reportTwo(const ast::Expr *expr, StringRef first, StringRef second) {
    diags.report(expr->loc(), diag::FlagOfTwo).range(expr->range) << first << second;
  }

  //===--- Flags of one parameter -----------------------------------------===//

  void checkFlag(const LauncherFlag &flag) {
    if (!flag.param)
      return;
    Evaluator &evaluator = silent.get();
    Environment callee(program.getFile(*launcher->strategy));
    Launcher::Candidates known = launcher->getCandidates(evaluator, *flag.param);
    if (std::optional<CTValue> value = launcher->getDefault(evaluator, *flag.param, callee))
      known.values.push_back(*value);
    std::vector<CTValue> tried = known.values;
    if (!known.areAll)
      tried.push_back(CTValue::integer(int64_t(1) << 40)); // which no condition names

    auto holds = [&](const CTValue &value) { return launcher->holds(evaluator, flag, value); };
    StringRef name = launcher->getParam(flag).name.name;
    SMRange range = flag.text->range;
    // A value whose condition always holds is sound: its flag has to be given.
    bool isAlone = flag.scale == Scale::None;
    if (llvm::none_of(tried, holds) || (isAlone && llvm::all_of(tried, holds)))
      diags.report(range.Start, diag::FlagSetsNothing).range(range)
          << flag.text->text << (holds(tried.front()) ? "every" : "no") << name;
    else if (isAlone && llvm::none_of(known.values, holds))
      diags.report(range.Start, diag::FlagSaysNoValue).range(range) << flag.text->text << name;
    for (const LauncherFlag *earlier : launcher->getFlags(*flag.param)) {
      if (earlier == &flag)
        return;
      checkPair(*earlier, flag, tried);
    }
  }

  void checkPair(const LauncherFlag &first, const LauncherFlag &second, ArrayRef<CTValue> tried) {
    for (const CTValue &value : tried) {
      if (!launcher->holds(silent.get(), first, value) || !launcher->holds(silent.get(), second, value))
        continue;
      SMRange range = second.text->range;
      DiagnosticBuilder error = diags.report(range.Start, diag::FlagsOverlap).range(range)
                                << first.text->text << second.text->text << launcher->getParam(first).name.name;
      error.note(first.text->loc(), diag::PreviousHere) << first.text->text;
      return;
    }
  }

  const ast::LauncherDecl &decl;
  SizeContext sizes;
  SizeBinding binding;
  Obligations obligations;
  SilentEvaluator silent;
  Evaluator loud;
  Environment env;
  Launcher *launcher = nullptr;
};
} // namespace stage::sema

std::optional<Launcher> Launcher::make(const Program &program, const ast::LauncherDecl &decl) {
  return LauncherChecker(program, decl).run();
}

void stage::sema::checkLauncher(const Program &program, const ast::LauncherDecl &launcher) {
  (void)Launcher::make(program, launcher);
}
