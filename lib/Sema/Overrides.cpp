//===- Overrides.cpp - the -D options of the command line -----------------===//
#include "Overrides.h"
#include "Meanings.h"
#include "stage/Parse/Parse.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Suggestions.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace stage;
using namespace stage::sema;

OverrideValue OverrideValue::read(StringRef text) {
  int64_t number;
  if (!text.getAsInteger(10, number) && text == std::to_string(number))
    return number;
  if (text == "true" || text == "false")
    return text == "true";
  return expression(text);
}

bool OverrideValue::isRange() const {
  auto *expression = std::get_if<Expression>(&value);
  return expression && expression->text.find_first_of("([\"") == std::string::npos &&
         StringRef(expression->text).contains("..");
}

std::string OverrideValue::getSpelling() const {
  if (const int64_t *number = getInteger())
    return std::to_string(*number);
  if (const bool *boolean = getBoolean())
    return *boolean ? "true" : "false";
  if (const std::string *string = getString())
    return '"' + *string + '"';
  return std::get<Expression>(value).text;
}

/// A literal needs no parser. `id`: the buffer of its spelling.
static const ast::Expr *makeExpression(const OverrideValue &value, ast::ASTContext &context, DiagnosticEngine &diags,
                                       unsigned id) {
  StringRef spelling = diags.getSources().getMemoryBuffer(id)->getBuffer();
  auto make = [&](auto node, ast::NodeKind kind) {
    node.kind = kind;
    node.range = {SMLoc::getFromPointer(spelling.begin()), SMLoc::getFromPointer(spelling.end())};
    return context.create(node);
  };
  if (const int64_t *number = value.getInteger(); number && *number >= 0) {
    ast::NumberExpr node;
    node.text = spelling;
    node.value = {*number, 1};
    node.real = double(*number);
    return make(node, ast::NodeKind::NumberExpr);
  }
  if (const bool *boolean = value.getBoolean()) {
    ast::BoolExpr node;
    node.value = *boolean;
    return make(node, ast::NodeKind::BoolExpr);
  }
  if (const std::string *string = value.getString()) {
    ast::StringExpr node;
    node.text = context.copy(StringRef(*string));
    return make(node, ast::NodeKind::StringExpr);
  }
  return parseExpression(context, diags, id);
}

Overrides::Overrides(Program &program, ArrayRef<Override> defines, DiagnosticEngine &diags)
    : program(program), diags(diags), env(*program.getMain()) {
  llvm::SourceMgr &sources = diags.getSources();
  for (const Override &define : defines) {
    Define &entry = list.emplace_back();
    entry.name = program.getContext().copy(StringRef(define.name));
    std::string spelling = define.value.getSpelling();
    const ast::Expr *&known = program.getDefines()[define.name + "=" + spelling];
    if (!known) {
      unsigned id =
          sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(spelling, "-D " + define.name), SMLoc());
      entry.range.Start = entry.range.End = SMLoc::getFromPointer(sources.getMemoryBuffer(id)->getBufferStart());
      known = makeExpression(define.value, program.getContext(), diags, id);
    }
    entry.value = known;
    if (!entry.value)
      valid = false;
    else
      entry.range = entry.value->range;
  }
}

/// `strategy.tp`, or `tp`.
static bool isNamed(const Overrides::Target &target, StringRef name) {
  if (name.size() == target.name.size())
    return name == target.name;
  return name.size() == target.owner.size() + 1 + target.name.size() && name.endswith(target.name) &&
         name.startswith(target.owner) && name[target.owner.size()] == '.';
}

void Overrides::resolve(ArrayRef<Target> targets, bool isLast) {
  for (Define &define : list) {
    if (!define.target.empty())
      continue;
    llvm::SmallVector<Target, 2> fitting;
    for (const Target &target : targets)
      if (isNamed(target, define.name))
        fitting.push_back(target);
    if (fitting.size() > 1) {
      reportAmbiguous(define, fitting);
      continue;
    }
    if (fitting.empty() && !isLast)
      continue;
    if (fitting.empty()) {
      std::vector<Candidate> candidates;
      StringRef last = define.name.contains('.') ? define.name.rsplit('.').second : define.name;
      for (const Target &target : targets)
        candidates.push_back({target.name, target.loc});
      DiagnosticBuilder error = diags.report(define.range.Start, diag::UnknownDefine) << define.name;
      explainUnknown(error, define, last, targets, candidates);
      valid = false;
      continue;
    }
    for (const Define &other : list)
      if (&other != &define && other.owner == fitting[0].owner && other.target == fitting[0].name) {
        diags.report(define.range.Start, diag::DefineTwice)
            .with(define.name)
            .note(other.range.Start, diag::OtherOneHere)
            .note(SMLoc(), diag::DefineBoth)
            .with(define.name, getText(other.range) + "," + getText(define.range));
        valid = false;
      }
    define.owner = fitting[0].owner;
    define.target = fitting[0].name;
  }
}

/// `-D gpus=64`, `-D machine.rail.rate=25GB/s`: the nearest name, or all names of the same owner.
void Overrides::explainUnknown(DiagnosticBuilder &error, const Define &define, StringRef last, ArrayRef<Target> targets,
                               ArrayRef<Candidate> candidates) {
  StringRef name = define.name;
  StringRef owner = name.rsplit('.').second.empty() ? StringRef() : name.split('.').first;
  bool isOfJob = owner.empty() || owner == "job";
  if (StringRef instead = isOfJob ? findEntryHint("job", last) : StringRef();
      !instead.empty() && !findNearest(last, candidates)) {
    error.note(SMLoc(), diag::NameInstead) << instead;
    return;
  }
  if (StringRef instead = owner.empty() ? StringRef() : findEntryHint(owner, name.drop_front(owner.size() + 1));
      !instead.empty()) {
    error.note(SMLoc(), diag::NameInstead) << instead;
    return;
  }
  std::vector<std::string> names;
  for (const Target &target : targets) {
    std::string full = (target.owner + "." + target.name).str();
    bool isOfOwner = !owner.empty() && target.owner.split('.').first == owner;
    // `machine.rail.rate`: those that end alike.
    if (isOfOwner && (name.count('.') < 2 || full.substr(full.rfind('.')) == name.substr(name.rfind('.'))))
      names.push_back(full);
  }
  llvm::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  constexpr size_t mostListed = 40;
  const Candidate *nearest = findNearest(last, candidates);
  StringRef meant = nearest ? nearest->name : findMeant(program, candidates, last);
  // `-D t=2` is the shortest name that begins so.
  for (const Candidate &candidate : meant.empty() && !last.empty() ? candidates : ArrayRef<Candidate>())
    if (candidate.name.startswith_insensitive(last) && (meant.empty() || candidate.name.size() < meant.size()))
      meant = candidate.name;
  if (!names.empty() && names.size() <= mostListed && (meant.empty() || name.count('.') > 1)) {
    error.note(SMLoc(), diag::DefineOwner) << owner << llvm::join(names, ", ");
  } else if (!meant.empty()) {
    auto found = llvm::find_if(candidates, [&](const Candidate &candidate) { return candidate.name == meant; });
    error.note(found->loc, diag::DidYouMean) << meant;
  } else if (owner.empty()) {
    std::vector<std::string> all;
    for (const Target &target : targets)
      if (target.owner != "machine" && target.owner != "runtime" && !llvm::is_contained(all, target.name.str()))
        all.push_back(target.name.str());
    if (!all.empty())
      error.note(SMLoc(), diag::ChooseOneOf) << llvm::join(all, ", ");
  }
}

void Overrides::reportAmbiguous(const Define &define, ArrayRef<Target> fitting) {
  std::string choices;
  for (const Target &target : fitting)
    choices += ((choices.empty() ? "" : " or ") + target.owner + "." + target.name).str();
  DiagnosticBuilder error = diags.report(define.range.Start, diag::AmbiguousDefine) << define.name << choices;
  for (const Target &target : fitting)
    if (target.loc.isValid())
      error.note(target.loc, diag::PreviousHere) << (target.owner + "." + target.name).str();
  valid = false;
}

const ast::Expr *Overrides::find(StringRef owner, StringRef name) const {
  for (const Define &define : list)
    if (define.owner == owner && define.target == name)
      return define.value;
  return nullptr;
}

std::vector<std::pair<StringRef, const ast::Expr *>> Overrides::listValues(StringRef owner) const {
  std::vector<std::pair<StringRef, const ast::Expr *>> values;
  for (const Define &define : list)
    if (define.owner == owner)
      values.emplace_back(define.target, define.value);
  return values;
}

void stage::sema::reportRangeOfValues(DiagnosticEngine &diags, SMRange place, StringRef name) {
  DiagnosticBuilder error = diags.report(place.Start, diag::ArgumentKind) << ("'" + name + "'").str() << "one number"
                                                                          << "a range";
  if (place.isValid())
    error.range(place);
  error.note(SMLoc(), diag::NameInstead) << ("values to compare are listed: '-D " + name + "=1,2,4,8'").str();
}
