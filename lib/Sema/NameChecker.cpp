//===- NameChecker.cpp - scopes and names of one declaration --------------===//
#include "NameChecker.h"
#include "Meanings.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Walk.h"
#include "llvm/ADT/StringSwitch.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

void NameChecker::define(SymbolKind kind, const ast::Ident &ident, std::optional<diag::Message<diag::Text>> unusedId) {
  if (Symbol *earlier = find(ident.name)) {
    DiagnosticBuilder error = diags.report(ident.loc(), diag::Redefinition).range(ident.range) << ident.name;
    error.note(earlier->ident.loc(), earlier->kind == SymbolKind::Var ? diag::VarDeclaredHere : diag::PreviousHere)
        << ident.name;
    return;
  }
  scopes.back().symbols.insert({ident.name, Symbol{kind, ident, false, unusedId}});
}

void NameChecker::defineValue(SymbolKind kind, const ast::Ident &ident) {
  define(kind, ident, ident.name.startswith("_") ? std::nullopt : std::optional(diag::UnusedValue));
}

Symbol *NameChecker::find(StringRef name) {
  for (Scope &scope : llvm::reverse(scopes)) {
    auto found = scope.symbols.find(name);
    if (found != scope.symbols.end())
      return &found->second;
  }
  return nullptr;
}

Symbol *NameChecker::use(StringRef name) {
  Symbol *symbol = find(name);
  if (symbol)
    symbol->used = true;
  return symbol;
}

void NameChecker::closeScope() {
  // Where something is wrong, what is unused may follow from that.
  bool hasErrors = diags.getNumErrors() != scopes.back().errorsBefore;
  for (auto &[name, symbol] : scopes.back().symbols)
    if (symbol.unusedId && !symbol.used &&
        !(hasErrors && (symbol.unusedId != diag::UnusedDim || !reportedNames.empty()))) {
      DiagnosticBuilder message = diags.report(symbol.ident.loc(), *symbol.unusedId).range(symbol.ident.range) << name;
      explainUnused(message, symbol);
    }
  scopes.pop_back();
}

const ast::Decl *NameChecker::lookupDecl(StringRef name, SMRange range) {
  llvm::SmallVector<const ast::Decl *, 2> found = program.lookupAll(file, name);
  if (found.size() > 1) {
    DiagnosticBuilder error = diags.report(range.Start, diag::AmbiguousName).range(range) << name;
    for (const ast::Decl *decl : found)
      error.note(decl->name.loc(), diag::PreviousHere) << name;
  }
  return found.empty() ? nullptr : found.front();
}

/// What is written here in place of a function of other languages; empty: no such function.
StringRef stage::sema::findNameInstead(StringRef name) {
  return llvm::StringSwitch<StringRef>(name)
      .Cases("concat", "cat", "concatenate", "stack",
             "tensors are put together by a formula, as in 'let y[b, s] = concat[s](x[b, s], z[b, s]);'")
      .Cases("reshape", "view", "flatten", "rearrange",
             "dims are joined or taken apart by a formula, as in 'let y[(b s), d] = x[b, s, d];'")
      .Cases("transpose", "permute", "swapaxes", "dims are swapped by a formula, as in 'let y[d, b] = x[b, d];'")
      .Cases("matmul", "einsum", "dot", "bmm",
             "a product is a formula, as in 'let y[b, n] = sum[m](x[b, m] * w[m, n]);', or 'linear(x, w)' (std.nn)")
      .Cases("print", "assert",
             "a program computes no values to look at: '--emit=graph' lists tensors with their "
             "shapes, and 'require D % 8 == 0;' demands something of sizes")
      .Case("not", "'not' is written '!', as in '!(H > D)'")
      .Case("gpus",
            "'gpus' has a value in a search alone: write a number, or give the job 'search { gpus = 64; }', and "
            "'stagec plan' tries plans of as many ranks")
      .Cases("embedding", "Embedding", "rows of a table are looked up: 'lookup(ids, table)' (std.nn)")
      .Case("numel", "the number of elements is 'volume'")
      .Case("range", "a range of numbers is '0..n'")
      .Case("len", "the size of a dim is its name")
      .Case("None",
            "a parameter without a value of its own has no '= ...'; for a value that means nothing write 'none'")
      .Cases("torch", "np", "numpy", "nn", "F",
             "the operators of the library are names, as in 'rms_norm(x, g)'; "
             "'stagec doc' lists them")
      .Default("");
}

static StringRef findDType(StringRef name, ArrayRef<Candidate> types);

/// `lookup(ids, pos)`: what is not called is no function, `cos`.
static bool isFunction(BuiltinKind kind) {
  return kind == BuiltinKind::ElementFunction || kind == BuiltinKind::Reduction;
}
static bool isCalled(SMRange range) { return range.End.isValid() && *range.End.getPointer() == '('; }

void NameChecker::reportUnknown(StringRef name, SMRange range, diag::Message<diag::Text> id) {
  std::vector<Candidate> candidates;
  for (const Scope &scope : scopes)
    for (const auto &[symbolName, symbol] : scope.symbols)
      if (symbol.kind != SymbolKind::Place) // which is no value
        candidates.push_back({symbolName, symbol.ident.loc()});
  if (id == diag::UnknownName) {
    for (const Candidate &candidate : program.getVisibleNames(file))
      candidates.push_back(candidate);
    for (const Builtin &builtin : getBuiltins())
      if (mayMeanBuiltin() && (isCalled(range) || !isFunction(builtin.kind)))
        candidates.push_back({builtin.name, SMLoc()});
  }
  if (!reportedNames.insert(name).second && id == diag::UnknownName)
    return; // one message of a name is enough
  DiagnosticBuilder error = diags.report(range.Start, id).range(range) << name;
  if (id == diag::UnknownName && program.suggestImport(error, name, &file))
    return;
  if (StringRef instead = id == diag::UnknownName ? findNameInstead(name) : ""; !instead.empty()) {
    error.note(SMLoc(), diag::NameInstead) << instead;
    return;
  }
  bool isTruth = name == "True" || name == "False";
  if (id != diag::UnknownName || isTruth || findNearest(name, candidates)) {
    suggestNearest(error, name, range, candidates);
    return;
  }
  // `quantize ... as int8`
  std::vector<Candidate> types;
  for (const Builtin &builtin : getBuiltins())
    if (builtin.kind == BuiltinKind::DType)
      types.push_back({builtin.name, SMLoc()});
  if (StringRef meant = findDType(name, types); !meant.empty() && meant.size() < name.size()) {
    error.fixIt(range, meant);
    error.note(SMLoc(), diag::DidYouMean) << meant;
    return;
  }
  // `CrossEntropyLoss` is `cross_entropy`.
  if (std::string found = findSpelledOtherwise(name, candidates); !found.empty()) {
    error.fixIt(range, found);
    error.note(SMLoc(), diag::DidYouMean) << found;
    suggestImportUnlessVisible(error, program, found, file);
    return;
  }
  explainUnknown(error, name);
}

/// `CrossEntropyLoss`, `nn.Linear`: the same words as a name in sight or of the library, in another spelling; empty:
/// none.
std::string NameChecker::findSpelledOtherwise(StringRef name, ArrayRef<Candidate> candidates) const {
  std::string snake;
  for (size_t i = 0; i != name.size(); ++i) {
    auto isUpper = [](char c) { return c >= 'A' && c <= 'Z'; };
    if (i && isUpper(name[i]) && !isUpper(name[i - 1]))
      snake += '_';
    snake += llvm::toLower(name[i]);
  }
  StringRef shorter = snake;
  for (StringRef ending : {"_loss", "_layer", "_module"})
    shorter.consume_back(ending);
  for (StringRef wanted : {StringRef(snake), shorter}) {
    for (const Candidate &candidate : candidates)
      if (candidate.name.equals_insensitive(wanted))
        return candidate.name.str();
    if (program.isInLibrary(wanted))
      return wanted.str();
  }
  return "";
}

void NameChecker::checkName(StringRef name, SMRange range) {
  if (!use(name) && !lookupDecl(name, range) && !findBuiltin(name) && !program.isLegalWord(name))
    reportUnknown(name, range);
}

/// Whether a call of an op has a result without dims, as that of a loss.
bool NameChecker::isNumber(const ast::CallExpr &call) const {
  auto *callee = dyn_cast<ast::NameExpr>(call.callee);
  const ast::Decl *decl = callee ? program.lookup(file, callee->name) : nullptr;
  if (auto *module = llvm::dyn_cast_or_null<ast::ModuleDecl>(decl))
    return module->results.size() == 1 && module->results.front()->dims.empty();
  auto *op = llvm::dyn_cast_or_null<ast::OpDecl>(decl);
  return op && op->results.size() == 1 && op->results.front().type && op->results.front().type->dims.empty();
}

/// `x.shape[1]`, `f(x).mean()`: tensors have neither members nor methods. False: nothing of this kind.
bool NameChecker::checkMember(const ast::MemberExpr &member) {
  const auto *base = dyn_cast<ast::NameExpr>(member.base);
  StringRef name = member.member.name;
  const Symbol *symbol = base ? find(base->name) : nullptr;
  // `nn.Linear`, `std.runtimes.pytorch`: the names of a file stand alone.
  for (const ast::Expr *inner = member.base; !base && llvm::isa<ast::MemberExpr>(inner);) {
    inner = llvm::cast<ast::MemberExpr>(inner)->base;
    base = dyn_cast<ast::NameExpr>(inner);
    symbol = base ? find(base->name) : nullptr;
    if (base && (symbol || program.lookup(file, base->name)))
      return false;
  }
  // `self.w1`
  static constexpr StringRef owners[] = {"self", "this", "cls"};
  if (base && base == member.base && !symbol && llvm::is_contained(owners, base->name)) {
    diags.report(base->loc(), diag::UnknownName)
        .range(member.range)
        .with(base->name)
        .note(SMLoc(), diag::NameInstead)
        .with("weights and values of a module are names, and belong to no object: write '" + name.str() + "'");
    use(name);
    return true;
  }
  // `F.gelu`, where `F` is a size
  if (base && symbol && symbol->kind == SymbolKind::Scalar && mayCallTensors()) {
    std::string known = findSpelledOtherwise(name, program.getVisibleNames(file));
    if (known.empty())
      return false;
    use(base->name);
    DiagnosticBuilder error = diags.report(member.loc(), diag::UnknownName).range(member.range) << textOf(&member);
    error.fixIt(member.range, known);
    error.note(symbol->ident.loc(), diag::NameInstead)
        << "'" + base->name.str() + "' is a size here, and ops of the library stand alone: write '" + known + "'";
    suggestImportUnlessVisible(error, program, known, file);
    return true;
  }
  if (base && !symbol && !program.lookup(file, base->name) && !findBuiltin(base->name)) {
    std::vector<Candidate> visible = program.getVisibleNames(file);
    std::string known = findSpelledOtherwise(name, visible);
    if (known.empty() && (program.lookup(file, name) || program.isInLibrary(name)))
      known = name.str();
    if (known.empty() || !reportedNames.insert(base->name).second)
      return false;
    DiagnosticBuilder error = diags.report(member.loc(), diag::UnknownName).range(member.range) << base->name;
    error.fixIt(member.range, known);
    error.note(SMLoc(), diag::NameInstead) << "names of a file stand alone: write '" + known + "'";
    suggestImportUnlessVisible(error, program, known, file);
    return true;
  }
  auto *call = dyn_cast<ast::CallExpr>(member.base);
  bool isTensor = symbol && (symbol->kind == SymbolKind::Tensor || symbol->kind == SymbolKind::Var);
  if (!isTensor && !(call && mayCallTensors()))
    return false;
  if (isTensor)
    use(base->name);
  else
    checkExpr(call);
  std::string operand = textOf(member.base);
  StringRef instead = findNameInstead(name);
  auto report = [&](const llvm::Twine &text) {
    diags.report(member.member.loc(), diag::TensorHasNone).range(member.range) << name << text;
    return true;
  };
  if (name == "shape" || name == "size")
    return report("the size of a dim is its name, as declared in the shape of the tensor, '[B, S, D]'");
  if (name == "T" || name == "mT")
    return report("dims are swapped by a formula, as in 'let y[d, b] = x[b, d];'");
  if (findBuiltin(name) == BuiltinKind::Reduction && call && isNumber(*call))
    return report("the result of '" + textOf(call->callee) + "' is one number already; leave '." + name + "()' out");
  if (findBuiltin(name) == BuiltinKind::Reduction)
    return report("a reduction is a formula that names dims, as in 'let z = " + operand + ";' and 'let m[] = " + name +
                  "[i, j](z[i, j]);', with an index for each dim of z");
  if (!instead.empty())
    return report(instead);
  return report("write a call, '" + name + "(" + operand + ")', or a formula, as in 'let y[b] = mean[d](x[b, d]);'");
}

void NameChecker::checkExpr(const ast::Expr *expr) {
  if (auto *member = dyn_cast<ast::MemberExpr>(expr); member && checkMember(*member))
    return;
  if (auto *name = dyn_cast<ast::NameExpr>(expr))
    return checkName(name->name, name->range);
  if (auto *list = dyn_cast<ast::ListForExpr>(expr)) {
    checkExpr(list->source);
    ScopeGuard scope(*this);
    define(SymbolKind::Scalar, list->variable);
    return checkExpr(list->element);
  }
  if (auto *compound = dyn_cast<ast::CompoundExpr>(expr))
    for (const ast::Ident &part : compound->indices)
      checkName(part.name, part.range);
  if (auto *call = dyn_cast<ast::CallExpr>(expr)) {
    auto *callee = dyn_cast<ast::NameExpr>(call->callee);
    std::optional<BuiltinKind> builtin = callee ? findBuiltin(callee->name) : std::nullopt;
    // `has(V)`: V is a name of whatever model the job has. `balanced(flops)`: it is no name at all.
    if ((builtin == BuiltinKind::ModelQuery || builtin == BuiltinKind::WordFunction) && !use(callee->name) &&
        !program.lookup(file, callee->name))
      return;
  }
  forEachChild(expr, [&](const ast::Expr *child) { checkExpr(child); });
}

void NameChecker::checkExprs(ArrayRef<ast::Expr *> exprs) {
  for (const ast::Expr *expr : exprs)
    checkExpr(expr);
}

void NameChecker::checkRequire(const ast::RequireStmt &require) {
  checkExpr(require.condition);
  for (const ast::MessagePart &part : require.messageParts)
    if (part.value)
      checkExpr(part.value);
}

void NameChecker::checkScalarKind(const ast::Param &param) {
  if (param.legal && param.tensor)
    diags.report(param.legal->loc(), diag::LegalOfTensor).range(param.legal->range) << param.name.name;
  else if (param.legal)
    checkLegal(param);
  static const Candidate kinds[] = {{axesKind, {}}, {"bool", {}}, {"bytes", {}},    {"int", {}},  {"rate", {}},
                                    {"real", {}},   {"size", {}}, {"schedule", {}}, {"time", {}}, {"type", {}}};
  const ast::Ident &kind = param.scalarKind;
  if (!kind || llvm::any_of(kinds, [&](const Candidate &known) { return known.name == kind.name; }))
    return;
  DiagnosticBuilder error = diags.report(kind.loc(), diag::UnknownKind).range(kind.range) << kind.name;
  StringRef meant = llvm::StringSwitch<StringRef>(kind.name.lower())
                        .Cases("float", "double", "number", "f32", "real")
                        .Cases("integer", "i32", "i64", "long", "int")
                        .Cases("boolean", "flag", "bool")
                        .Cases("dim", "dimension", "size")
                        .Cases("dtype", "str", "type")
                        .Default("");
  if (const Candidate *nearest = meant.empty() ? findNearest(kind.name, kinds) : nullptr)
    meant = nearest->name;
  if (!meant.empty()) {
    error.fixIt(kind.range, meant);
    error.note(SMLoc(), diag::DidYouMean) << meant;
  }
}

/// `in 0..3`: people who know other languages expect 3 to be legal.
void NameChecker::checkLegal(const ast::Param &param) {
  checkExpr(param.legal);
  checkShortRange(param.legal, param.name.name);
}

void NameChecker::checkShortRange(const ast::Expr *values, StringRef name) {
  auto *range = dyn_cast<ast::RangeExpr>(values);
  auto *begin = range ? dyn_cast<ast::NumberExpr>(range->begin) : nullptr;
  auto *end = range ? dyn_cast<ast::NumberExpr>(range->end) : nullptr;
  constexpr int64_t fewValues = 8;
  if (!begin || !end || !begin->value.isInteger() || !end->value.isInteger() ||
      end->value.num - begin->value.num > fewValues || end->value.num <= begin->value.num)
    return;
  std::string listed;
  for (int64_t value = int64_t(begin->value.num); value < end->value.num; ++value)
    listed += (listed.empty() ? "" : ", ") + std::to_string(value);
  diags.report(range->loc(), diag::ShortRange).range(range->range) << int64_t(end->value.num) << listed << name;
}

/// `E = None`: who means that a call must give it.
void NameChecker::checkDefault(const ast::Param &param) {
  auto *name = dyn_cast<ast::NameExpr>(param.defaultValue);
  if (!name || name->name != "None")
    return checkExpr(param.defaultValue);
  DiagnosticBuilder error = diags.report(name->loc(), diag::UnknownName).range(name->range) << name->name;
  error.note(SMLoc(), diag::NameInstead) << "a parameter that each call must give has no value of its own: write '" +
                                                param.name.name + "' alone; one that may mean nothing is '" +
                                                param.name.name + " = none', which a strategy or module asks for by '" +
                                                param.name.name + " == none'";
}

void NameChecker::checkParams(ArrayRef<ast::Param> params, bool mustBeUsed) {
  for (const ast::Param &param : params) {
    if (param.defaultValue && param.scalarKind.name != axesKind)
      checkDefault(param);
    checkScalarKind(param);
    if (param.tensor)
      diags.report(param.tensor->loc(), diag::TensorParameter).range(param.tensor->range) << param.name.name;
    define(SymbolKind::Scalar, param.name, mustBeUsed ? std::optional(diag::UnusedParameter) : std::nullopt);
  }
}

/// `int32` is `i32`, `bfloat16` is `bf16`: the first letter and the digits are alike, the letters between left out.
static StringRef findDType(StringRef name, ArrayRef<Candidate> types) {
  StringRef usual = llvm::StringSwitch<StringRef>(name.lower())
                        .Cases("float", "single", "f32")
                        .Cases("half", "float16", "f16")
                        .Case("int", "i32")
                        .Case("long", "i64")
                        .Case("byte", "u8")
                        .Cases("double", "float64", "fp64", "f64", "f32")
                        .Default("");
  std::string lower = name.lower();
  StringRef best;
  for (const Candidate &type : types) {
    StringRef rest = lower, digits = type.name.ltrim("abcdefghijklmnopqrstuvwxyz");
    bool fits = !digits.empty() && rest.endswith(digits) && rest.front() == type.name.front();
    for (char letter : type.name)
      if (size_t at = rest.find(letter); at == StringRef::npos)
        fits = false;
      else
        rest = rest.drop_front(at + 1);
    if (fits && type.name.size() > best.size())
      best = type.name;
  }
  return best.empty() ? usual : best;
}

void NameChecker::checkDType(const ast::Ident &dtype) {
  if (!dtype || isDTypeName(dtype.name))
    return;
  std::vector<Candidate> types;
  for (const Builtin &builtin : getBuiltins())
    if (builtin.kind == BuiltinKind::DType)
      types.push_back({builtin.name, SMLoc()});
  DiagnosticBuilder error = diags.report(dtype.loc(), diag::UnknownDType).range(dtype.range) << dtype.name;
  if (StringRef meant = findDType(dtype.name, types); !meant.empty()) {
    error.fixIt(dtype.range, meant);
    error.note(SMLoc(), diag::DidYouMean) << meant;
    return;
  }
  suggestNearest(error, dtype.name, dtype.range, types);
}

void NameChecker::checkDimsOnce(const ast::TensorType &type) {
  llvm::MapVector<StringRef, SMRange> seen;
  auto see = [&](StringRef name, SMRange range) {
    auto [it, isNew] = seen.insert({name, range});
    if (!isNew)
      diags.report(range.Start, diag::DimTwice).range(range).range(it->second) << name;
  };
  for (const ast::ShapeDim &dim : type.dims) {
    if (dim.index)
      see(dim.index.name, dim.index.range);
    else if (auto *name = dyn_cast<ast::NameExpr>(dim.size))
      see(name->name, name->range);
    else if (auto *compound = dyn_cast<ast::CompoundExpr>(dim.size))
      for (const ast::Ident &index : compound->indices)
        see(index.name, index.range);
  }
}

void NameChecker::checkEntriesOnce(ArrayRef<ast::Ident> names) {
  llvm::MapVector<StringRef, const ast::Ident *> seen;
  for (const ast::Ident &name : names) {
    auto [it, isNew] = seen.insert({name.name, &name});
    if (!isNew)
      diags.report(name.loc(), diag::Redefinition)
          .range(name.range)
          .with(name.name)
          .note(it->second->loc(), diag::PreviousHere)
          .with(name.name);
  }
}

void NameChecker::checkEntryNames(ArrayRef<ast::EntryStmt *> entries, StringRef owner, ArrayRef<Candidate> known) {
  std::vector<ast::Ident> names;
  for (const ast::EntryStmt *entry : entries) {
    names.push_back(entry->name);
    if (llvm::none_of(known, [&](const Candidate &candidate) { return candidate.name == entry->name.name; }))
      reportUnknownEntry(entry->name, owner, known);
  }
  checkEntriesOnce(names);
}

void NameChecker::reportUnknownEntry(const ast::Ident &name, StringRef owner, ArrayRef<Candidate> known) {
  DiagnosticBuilder error = diags.report(name.loc(), diag::UnknownEntry).range(name.range) << owner << name.name;
  if (StringRef hint = findEntryHint(owner, name.name); !hint.empty()) {
    error.note(SMLoc(), diag::NameInstead) << hint;
    return;
  }
  // `rail.rate`: the level may be one of the machine that is extended.
  static constexpr StringRef ofLevels[] = {"rate", "ranks", "base", "hop"};
  if (auto [level, entry] = name.name.split('.');
      owner == "machine" && !findNearest(name.name, known) && llvm::is_contained(ofLevels, entry)) {
    error.note(SMLoc(), diag::NameInstead)
        << "an entry of a level stands inside of it: write 'level " + level.str() + " { " + entry.str() + " = ...; }'";
    return;
  }
  std::vector<Candidate> alike;
  StringRef group = name.name.split('.').first;
  for (const Candidate &candidate : known)
    if (candidate.name.startswith(group) && candidate.name.substr(group.size()).startswith("."))
      alike.push_back(candidate);
  bool isNear = findNearest(name.name, known) != nullptr;
  // `bf16` is the end of `flops.bf16`.
  if (alike.empty() && !isNear)
    for (const Candidate &candidate : known)
      if (candidate.name.size() > name.name.size() && candidate.name.endswith(name.name) &&
          candidate.name.drop_back(name.name.size()).endswith("."))
        alike.push_back(candidate);
  suggestNearest(error, name.name, name.range, alike.empty() || isNear ? known : llvm::makeArrayRef(alike));
}

void NameChecker::checkPlainLet(const ast::LetStmt &let, StringRef owner) {
  checkExpr(let.value);
  if (let.form != ast::LetStmt::Form::Let || let.isFormula || let.type || let.targets.size() != 1)
    diags.report(let.loc(), diag::PlainLetOnly).range(let.range) << owner;
  for (const ast::Ident &target : let.targets)
    defineValue(SymbolKind::Scalar, target);
}

void NameChecker::reportWrongDecl(const ast::Ident &name, StringRef kind, const ast::Decl &decl) {
  diags.report(name.loc(), diag::WrongDeclaration)
      .range(name.range)
      .with(name.name, kind)
      .note(decl.name.loc(), diag::PreviousHere)
      .with(name.name);
}
