//===- Launchers.cpp - reading arguments of a framework -------------------===//
//
// Problem, example and invariants: Launchers.h.
//
// Reading, in steps:
//
//   1. Words are matched with flags: `--tp 8` and `--tp=8` are one flag and its value, and `--modules=[mlp,moe]` is a
//   flag
//      for each of its elements.
//   2. Of each parameter, in order:
//        with a value flag     its value, if the conditions agree with the flags that were read
//        without one           the default, else the first legal value with which the conditions agree
//      For example, `zero >= 1` agrees with 1, 2 and 3 where the flag was read, and 1 is the first of them.
//
//===----------------------------------------------------------------------===//
#include "stage/Sema/Launchers.h"
#include "JobWords.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Suggestions.h"
#include "llvm/ADT/Sequence.h"

using namespace stage;
using namespace stage::sema;
using Scale = LauncherFlag::Scale;
using Test = LauncherFlag::Test;

//===----------------------------------------------------------------------===//
// Flags and their conditions
//===----------------------------------------------------------------------===//

std::vector<const LauncherFlag *> Launcher::getFlags(unsigned param) const {
  std::vector<const LauncherFlag *> found;
  for (const LauncherFlag &flag : flags)
    if (flag.param == param)
      found.push_back(&flag);
  return found;
}

bool Launcher::says(StringRef param) const {
  return llvm::any_of(flags, [&](const LauncherFlag &flag) { return flag.param && getParam(flag).name.name == param; });
}

std::string Launcher::listFlags(StringRef param) const {
  std::string text;
  for (const LauncherFlag &flag : flags)
    if (flag.param && getParam(flag).name.name == param)
      text += (text.empty() ? "'" : ", '") + flag.text->text.str() + "'";
  return text;
}

bool Launcher::isSwitch(StringRef key) const {
  return isKey(key) && llvm::all_of(flags, [&](const LauncherFlag &flag) {
           return flag.key != key || (flag.param && flag.scale == Scale::None && !flag.value);
         });
}

bool Launcher::isList(StringRef key) const {
  return llvm::any_of(flags, [&](const LauncherFlag &flag) { return flag.key == key && flag.isElement; });
}

std::string Launcher::getFlagText(Evaluator &evaluator, StringRef param, const CTValue &value) const {
  for (const LauncherFlag &flag : flags)
    if (flag.param && flag.test == Test::Equals && getParam(flag).name.name == param && holds(evaluator, flag, value))
      return flag.text->text.str();
  return "";
}

bool Launcher::isKey(StringRef word) const {
  return llvm::any_of(flags, [&](const LauncherFlag &flag) { return flag.key == word; });
}

std::string Launcher::listOthersWith(StringRef key) const {
  std::string text;
  for (const ast::Decl *decl : getFile().decls) {
    auto *other = llvm::dyn_cast<ast::LauncherDecl>(decl);
    if (!other || other->name.name == getName())
      continue;
    std::optional<Launcher> made = make(*program, *other);
    if (made && made->isKey(key))
      text += (text.empty() ? "'--launcher=" : "' and '--launcher=") + other->name.name.str();
  }
  return text.empty() ? text : text + "'";
}

std::vector<Candidate> Launcher::getKeys() const {
  std::vector<Candidate> keys;
  for (const LauncherFlag &flag : flags)
    keys.push_back({flag.key, flag.text->loc()});
  return keys;
}

bool Launcher::isSame(Evaluator &evaluator, const CTValue &a, const CTValue &b) {
  return evaluator.isSame(a, b) && a.getArguments().size() == b.getArguments().size() &&
         llvm::all_of(llvm::zip(a.getArguments(), b.getArguments()), [&](auto pair) {
           const auto &[left, right] = pair;
           return left.name.name == right.name.name && isSame(evaluator, left.value, right.value);
         });
}

bool Launcher::holds(Evaluator &evaluator, const LauncherFlag &flag, const CTValue &value) const {
  if (flag.test == Test::Always)
    return true;
  if (flag.test == Test::IsTrue || flag.test == Test::IsFalse)
    return value.isBool() && value.getBool() == (flag.test == Test::IsTrue);
  std::optional<CTValue> constant = evaluator.evaluate(flag.constant, Environment(program->getFile(*decl)));
  if (!constant)
    return false; // the check of the declaration has reported it
  if (!flag.argument.empty())
    return evaluator.isSame(value, *constant); // whatever the argument is
  if (flag.test == Test::Equals || flag.test == Test::Differs)
    return isSame(evaluator, value, *constant) == (flag.test == Test::Equals);
  std::optional<Rational> number = evaluator.getExact(value), least = evaluator.getExact(*constant);
  if (!number || !least || !(value.getDimension() == constant->getDimension()))
    return false;
  int order = number->compare(*least);
  return flag.test == Test::Above ? order > 0 : order >= 0;
}

std::optional<CTValue> Launcher::getDefault(Evaluator &silent, unsigned param, const Environment &callee) const {
  const ast::Param &declared = *params[param];
  return declared.defaultValue ? silent.evaluateParam(declared, nullptr, callee, callee) : std::nullopt;
}

Launcher::Candidates Launcher::getCandidates(Evaluator &silent, unsigned param) const {
  constexpr int64_t most = 4096;
  Candidates result;
  const ast::Param &declared = *params[param];
  Environment file(program->getFile(*strategy));
  // Legal values that depend on other parameters are not known here.
  std::optional<CTValue> legal = declared.legal ? silent.evaluate(declared.legal, file) : std::nullopt;
  if (legal && legal->getKind() == CTValue::Kind::List) {
    result.values = legal->getElements();
    result.areAll = true;
    return result;
  }
  if (legal && legal->getKind() == CTValue::Kind::Range) {
    std::optional<int64_t> begin = legal->getElements()[0].getInteger(), end = legal->getElements()[1].getInteger();
    result.areAll = begin && end && *end > *begin && *end - *begin <= most;
    for (int64_t value = result.areAll ? *begin : 0; result.areAll && value < *end; ++value)
      result.values.push_back(CTValue::integer(value));
    if (result.areAll)
      return result;
  }
  result.areAll = declared.scalarKind.name == "bool";
  if (result.areAll) {
    result.values = {CTValue::boolean(false), CTValue::boolean(true)};
    return result;
  }

  Environment own(program->getFile(*decl));
  for (const LauncherFlag *flag : getFlags(param)) {
    if (flag->test == Test::IsTrue || flag->test == Test::IsFalse)
      result.values.insert(result.values.end(), {CTValue::boolean(false), CTValue::boolean(true)});
    std::optional<CTValue> constant = flag->constant ? silent.evaluate(flag->constant, own) : std::nullopt;
    if (!constant)
      continue;
    result.values.push_back(*constant);
    std::optional<Rational> number = silent.getExact(*constant);
    for (int64_t step : {1, -1}) {
      std::optional<Rational> next = number ? number->add(Rational::integer(step)) : std::nullopt;
      Size size = next ? silent.getSizes().constant(*next) : Size();
      if (size)
        result.values.push_back(constant->isQuantity() ? CTValue::quantity(size, constant->getDimension())
                                                       : CTValue::size(size));
    }
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

std::optional<Launcher::Seen> Launcher::match(ArrayRef<std::string> words, ArrayRef<SMLoc> places,
                                              std::vector<std::string> *ignored, DiagnosticEngine &diags) const {
  Seen seen(flags.size());
  bool ok = true;
  for (size_t i = 0; i != words.size(); ++i) {
    StringRef word = words[i], key = word;
    SMLoc loc = i < places.size() ? places[i] : SMLoc();
    std::optional<StringRef> value;
    if (!isKey(word) && word.contains('=')) {
      key = word.split('=').first;
      value = word.split('=').second;
    }
    if (!isKey(key)) {
      ok = false;
      if (!word.startswith("-") && !value) {
        diags.report(loc, diag::StrayWord) << word << getName();
        continue;
      }
      DiagnosticBuilder error = diags.report(loc, diag::UnknownFlag) << getName() << key;
      std::string others = listOthersWith(key);
      std::vector<Candidate> keys = getKeys();
      // `--tp`: who knows the parameter means its flag.
      auto meant = llvm::find_if(params, [&](const ast::Param *param) { return param->name.name == key.ltrim('-'); });
      std::string listed = meant != params.end() ? listFlags((*meant)->name.name) : "";
      if (!others.empty())
        error.note(SMLoc(), diag::NameInstead) << "it is a flag of " + others;
      else if (!listed.empty())
        error.note((*meant)->name.loc(), diag::FlagsOfParameter) << (*meant)->name.name << listed;
      else if (const Candidate *nearest = findNearest(key, keys))
        error.note(nearest->loc, diag::DidYouMean) << nearest->name;
      // A value of it is no fault of its own.
      if (!value && i + 1 != words.size() && !StringRef(words[i + 1]).startswith("-") && !isKey(words[i + 1]))
        ++i;
      continue;
    }
    // The word behind a flag is its value, unless it is a flag, or the flag takes none.
    bool takesValue = llvm::any_of(flags, [&](const LauncherFlag &flag) {
      return flag.key == key && (!flag.param || flag.scale != Scale::None || flag.value);
    });
    auto isValue = [&](size_t at) {
      return at < words.size() && !StringRef(words[at]).startswith("-") && !isKey(words[at]) &&
             !isKey(StringRef(words[at]).split('=').first);
    };
    std::string list = value ? value->str() : "";
    if (isList(key)) {
      // `--modules mlp moe`
      while (!value && isValue(i + 1))
        list += " " + words[++i];
      ok &= matchElements(key, list, loc, seen, diags);
    } else {
      if (!value && takesValue && isValue(i + 1))
        value = words[++i];
      ok &= matchValue(key, value, loc, seen, diags);
    }
    bool isIgnored = llvm::any_of(llvm::zip(flags, seen), [&](auto pair) {
      const auto &[flag, read] = pair;
      return flag.key == key && !flag.param && read;
    });
    if (ignored && isIgnored && !llvm::is_contained(*ignored, key))
      ignored->push_back(key.str());
  }
  return ok ? std::optional(std::move(seen)) : std::nullopt;
}

/// Notes a flag and its value as read; false after a report.
bool Launcher::matchValue(StringRef key, std::optional<StringRef> value, SMLoc loc, Seen &seen,
                          DiagnosticEngine &diags) const {
  std::string known;
  for (size_t i = 0; i != flags.size(); ++i) {
    const LauncherFlag &flag = flags[i];
    if (flag.key != key)
      continue;
    if (flag.value && value != flag.value) {
      known += (known.empty() ? "" : ", ") + flag.value->str();
      continue;
    }
    bool wantsValue = flag.scale != Scale::None;
    if (flag.param && wantsValue && !value) {
      diags.report(loc.isValid() ? loc : flag.text->loc(), diag::FlagWithoutValue) << key;
      return false;
    }
    if (flag.param && !wantsValue && !flag.value && value) {
      diags.report(loc.isValid() ? loc : flag.text->loc(), diag::FlagWithValue) << key << *value;
      return false;
    }
    bool isTwice = flag.param && llvm::any_of(llvm::seq<size_t>(0, flags.size()), [&](size_t other) {
                     return flags[other].key == key && seen[other] && (!flag.isElement || other == i);
                   });
    if (isTwice) {
      diags.report(loc.isValid() ? loc : flag.text->loc(), diag::FlagGivenTwice) << key;
      return false;
    }
    seen[i] = SeenFlag{wantsValue ? value->str() : "", loc};
    return true;
  }
  diags.report(loc, diag::UnknownFlagValue) << key << known << (value ? "'" + value->str() + "'" : "none");
  return false;
}

/// Notes the elements of a list, `[mlp,moe]`, `mlp moe`, or `['mlp', 'moe']`, each as the value of the flag of its
/// place,
/// `--sizes[0]`, or as one that a flag names; false after a report.
bool Launcher::matchElements(StringRef key, StringRef list, SMLoc loc, Seen &seen, DiagnosticEngine &diags) const {
  bool ok = true;
  unsigned place = 0;
  for (StringRef rest = list.trim("[] "); !rest.empty(); rest = rest.ltrim(", "), ++place) {
    StringRef element = rest.take_front(rest.find_first_of(", "));
    rest = rest.drop_front(element.size());
    auto flag = llvm::find_if(flags, [&](const LauncherFlag &flag) {
      return flag.key == key && flag.isElement && flag.scale != Scale::None && flag.value == std::to_string(place);
    });
    bool hasPlaces = llvm::any_of(flags, [&](const LauncherFlag &flag) {
      return flag.key == key && flag.isElement && flag.scale != Scale::None;
    });
    if (flag == flags.end() && hasPlaces) {
      diags.report(loc, diag::StrayWord) << element << getName();
      return false;
    }
    if (flag == flags.end() || seen[flag - flags.begin()])
      ok &= matchValue(key, element.trim("'\""), loc, seen, diags);
    else
      seen[flag - flags.begin()] = SeenFlag{element.str(), loc};
  }
  return ok;
}

std::optional<CTValue> Launcher::parseWord(Evaluator &evaluator, unsigned param, StringRef text) const {
  SilentEvaluator silent(*program, evaluator.getSizes(), evaluator.getBinding());
  int64_t number;
  bool isDigits = !text.startswith("-") && !text.startswith("+") && !text.getAsInteger(10, number);
  if (isDigits || isNumber(silent.get(), param))
    return isDigits ? std::optional(CTValue::integer(number)) : std::nullopt;
  // Of several legal values one has this name, or it is unknown.
  Candidates candidates = getCandidates(silent.get(), param);
  for (const CTValue &value : candidates.values)
    if ((value.isNone() ? "none" : evaluator.format(value)) == text)
      return value;
  if (candidates.areAll)
    return std::nullopt;
  if (text == "true" || text == "false")
    return CTValue::boolean(text == "true");
  if (text == "none")
    return CTValue();
  // A job is no value, and may have the name of a word.
  const ast::Decl *found = program->lookup(getFile(param), text);
  if (found && !llvm::isa<ast::JobDecl>(found))
    return CTValue::decl(found);
  for (const Builtin &builtin : getBuiltins())
    if (builtin.name == text && (builtin.kind == BuiltinKind::Word || builtin.kind == BuiltinKind::DType))
      return CTValue::word(builtin.name);
  return std::nullopt;
}

/// `precision` of `job.precision`.
static StringRef getKindName(const ast::Param &param) { return param.name.name.rsplit('.').second; }

/// Whether a value is a declaration of the kind that the name of a parameter of the job says.
static bool isDecl(const CTValue &value, const ast::Param &param) {
  const ast::Decl *decl = value.isDecl() ? value.getDecl() : nullptr;
  StringRef kind = getKindName(param);
  return decl && ((kind == configWord && llvm::isa<ast::ConfigDecl>(decl)) ||
                  (kind == precisionWord && llvm::isa<ast::PrecisionDecl>(decl)) ||
                  (kind == machineWord && llvm::isa<ast::MachineDecl>(decl)) ||
                  (kind == runtimeWord && llvm::isa<ast::RuntimeDecl>(decl)) ||
                  (kind == optimizerWord && llvm::isa<ast::OptimizerDecl>(decl)));
}

void Launcher::reportDecl(Evaluator &evaluator, const LauncherFlag &flag, const SeenFlag &seen) const {
  SMLoc loc = seen.loc.isValid() ? seen.loc : flag.text->loc();
  DiagnosticBuilder error = evaluator.getDiags().report(loc, diag::BadFlagValue)
                            << flag.key << getParam(flag).name.name << seen.text;
  std::vector<Candidate> names;
  for (const Candidate &candidate : program->getVisibleNames(getFile(*flag.param))) {
    const ast::Decl *found = program->lookup(getFile(*flag.param), candidate.name);
    if (found && isDecl(CTValue::decl(found), getParam(flag)))
      names.push_back(candidate);
  }
  if (const Candidate *nearest = findNearest(seen.text, names))
    error.note(nearest->loc, diag::DidYouMean) << nearest->name;
}

void Launcher::reportValue(Evaluator &evaluator, const LauncherFlag &flag, const SeenFlag &seen) const {
  StringRef text = seen.text;
  SMLoc loc = seen.loc.isValid() ? seen.loc : flag.text->loc();
  DiagnosticEngine &diags = evaluator.getDiags();
  SilentEvaluator silent(*program, evaluator.getSizes(), evaluator.getBinding());
  Candidates candidates = getCandidates(silent.get(), *flag.param);
  std::string known;
  for (const CTValue &value : candidates.values)
    known += (known.empty() ? "" : ", ") + (value.isNone() ? "none" : evaluator.format(value));
  if (candidates.areAll)
    diags.report(loc, diag::UnknownFlagValue) << flag.key << known << "'" + text.str() + "'";
  else if (isNumber(silent.get(), *flag.param))
    diags.report(loc, diag::FlagNumber) << flag.key << text;
  else
    diags.report(loc, diag::BadFlagValue) << flag.key << getParam(flag).name.name << text;
}

/// Whether values of a parameter are numbers, by its kind or by its default.
bool Launcher::isNumber(Evaluator &silent, unsigned param) const {
  StringRef kind = params[param]->scalarKind.name;
  std::optional<CTValue> standard = getDefault(silent, param, Environment(program->getFile(*strategy)));
  return kind == "size" || kind == "int" || (kind.empty() && standard && standard->isSize());
}

/// What a flag's value is of its parameter; reported if it is none.
std::optional<CTValue> Launcher::parse(Evaluator &evaluator, const LauncherFlag &flag, const SeenFlag &seen) const {
  StringRef text = seen.text;
  SMLoc loc = seen.loc.isValid() ? seen.loc : flag.text->loc();
  if (getParam(flag).name.name == clipParam) { // frameworks say 0 where nothing is clipped
    double norm;
    if (!text.getAsDouble(norm) && norm >= 0 && norm < std::numeric_limits<double>::infinity())
      return norm > 0 ? CTValue::real(norm) : CTValue();
    evaluator.getDiags().report(loc, diag::FlagNumber) << flag.key << text;
    return std::nullopt;
  }
  if (flag.scale == Scale::Plain && flag.argument.empty()) {
    std::optional<CTValue> value = parseWord(evaluator, *flag.param, text);
    if (isOfJob(*flag.param) && getParam(flag).scalarKind.name.empty() && (!value || !isDecl(*value, getParam(flag)))) {
      reportDecl(evaluator, flag, seen);
      return std::nullopt;
    }
    if (!value)
      reportValue(evaluator, flag, seen);
    return value;
  }
  int64_t number;
  if (text.startswith("-") || text.startswith("+") || text.getAsInteger(10, number)) {
    evaluator.getDiags().report(loc, diag::FlagNumber) << flag.key << text;
    return std::nullopt;
  }
  if (!flag.argument.empty()) {
    std::optional<CTValue> value = evaluator.evaluate(flag.constant, Environment(program->getFile(*decl)));
    if (!value || !value->isDecl())
      return std::nullopt; // the check of the declaration has reported it
    return CTValue::decl(value->getDecl(), {{{flag.argument, SMRange()}, CTValue::integer(number), SMRange()}});
  }
  Rational whole = Rational::integer(number);
  std::optional<Rational> scaled = flag.scale == Scale::Over ? whole.mul(flag.factor) : whole.div(flag.factor);
  Size size = scaled ? evaluator.getSizes().constant(*scaled) : Size();
  if (!size || (flag.unit.isNumber() && (!scaled->isInteger() || isTooLarge(*scaled)))) {
    evaluator.getDiags().report(loc, diag::FlagFraction)
        << flag.key << text << getParam(flag).name.name << (scaled ? scaled->str() : "beyond 127 bits");
    return std::nullopt;
  }
  return flag.unit.isNumber() ? CTValue::size(size) : CTValue::quantity(size, flag.unit);
}

bool Launcher::agrees(Evaluator &evaluator, unsigned param, const CTValue &value, const Seen &seen) const {
  for (size_t i = 0; i != flags.size(); ++i)
    if (flags[i].param == param && flags[i].test != Test::Always &&
        holds(evaluator, flags[i], value) != seen[i].has_value())
      return false;
  return true;
}

bool Launcher::readParam(Evaluator &evaluator, unsigned param, const Seen &seen,
                         const std::optional<CTValue> &defaultValue, SMLoc begin, std::optional<CTValue> &value) const {
  bool isSeen = false, hasConditions = false;
  for (size_t i = 0; i != flags.size(); ++i) {
    if (flags[i].param != param)
      continue;
    isSeen |= seen[i].has_value();
    hasConditions |= flags[i].test != Test::Always;
    if (!seen[i] || flags[i].scale == Scale::None)
      continue;
    value = parse(evaluator, flags[i], *seen[i]);
    if (!value)
      return false;
  }
  bool isDefault =
      defaultValue ? agrees(evaluator, param, *defaultValue, seen) : !isSeen && (!hasConditions || isOfJob(param));
  if (!value && isDefault)
    return true;
  if (!value) {
    SilentEvaluator silent(*program, evaluator.getSizes(), evaluator.getBinding());
    for (const CTValue &candidate : getCandidates(silent.get(), param).values)
      if (!value && agrees(evaluator, param, candidate, seen))
        value = candidate;
  }
  if (value && agrees(evaluator, param, *value, seen))
    return true;
  reportContradiction(evaluator, param, seen, begin);
  return false;
}

/// Where a flag says a configuration by its name, the framework knows values that are not among the flags.
std::string Launcher::describeConfig(const Seen &seen) const {
  for (size_t i = 0; i != flags.size(); ++i)
    if (seen[i] && flags[i].param && isOfJob(*flags[i].param) && getKindName(getParam(flags[i])) == configWord)
      return ", with the value that the framework has for '" + flags[i].text->text.str() + "'";
  return "";
}

void Launcher::reportContradiction(Evaluator &evaluator, unsigned param, const Seen &seen, SMLoc begin) const {
  std::vector<const LauncherFlag *> read, all = getFlags(param);
  for (size_t i = 0; i != flags.size(); ++i)
    if (flags[i].param == param && seen[i])
      read.push_back(&flags[i]);
  StringRef name = params[param]->name.name;
  DiagnosticEngine &diags = evaluator.getDiags();
  auto join = [](ArrayRef<const LauncherFlag *> list) {
    std::string text;
    for (const LauncherFlag *flag : list)
      text += (text.empty() ? "'" : ", '") + flag->text->text.str() + "'";
    return text;
  };
  SMLoc loc = begin.isValid() ? begin : all.front()->text->loc();
  if (!read.empty()) {
    SMLoc place = seen[read.front() - flags.data()]->loc;
    loc = place.isValid() ? place : read.front()->text->loc();
  }
  if (read.empty())
    diags.report(loc, diag::FlagNeeded) << name << join(all) + describeConfig(seen);
  else if (read.size() > 1)
    diags.report(loc, diag::FlagsContradict) << join(read) << name;
  else
    diags.report(loc, diag::FlagContradictsItself) << read.front()->key << seen[read.front() - flags.data()]->text
                                                   << getName() << ast::textOf(read.front()->stmt->condition);
}

/// Where the first flag stands that says a parameter; invalid: none does.
SMRange Launcher::findPlace(unsigned param, const Seen &seen) const {
  for (size_t i = 0; i != flags.size(); ++i)
    if (flags[i].param == param && seen[i])
      return {seen[i]->loc, seen[i]->loc};
  return {};
}

std::optional<std::vector<NamedValue>> Launcher::read(Evaluator &evaluator, ArrayRef<std::string> words,
                                                      ArrayRef<SMLoc> places, std::vector<std::string> *ignored) const {
  std::optional<Seen> seen = match(words, places, ignored, evaluator.getDiags());
  if (!seen)
    return std::nullopt;
  SilentEvaluator silent(*program, evaluator.getSizes(), evaluator.getBinding());
  Environment callee(program->getFile(*strategy));
  std::vector<NamedValue> arguments;
  bool ok = true;
  for (unsigned i = 0; i != params.size(); ++i) {
    const ast::Param &param = *params[i];
    std::optional<CTValue> standard = getDefault(silent.get(), i, callee), value;
    if (!readParam(evaluator, i, *seen, standard, places.empty() ? SMLoc() : places.front(), value)) {
      ok = false;
      continue;
    }
    if (value) {
      value = evaluator.convert(*value, param, callee, SMRange());
      ok &= value.has_value();
      if (value)
        arguments.push_back({{param.name.name, SMRange()}, *value, findPlace(i, *seen)});
    }
    if (value || standard)
      callee.define(param.name.name, value ? *value : *standard);
  }
  return ok ? std::optional(std::move(arguments)) : std::nullopt;
}
