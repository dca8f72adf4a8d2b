//===- Meanings.cpp - what a word of another tool says here ---------------===//
//
// Problem: who knows a framework gives a strategy, a model or a step its words, which are near to no name here.
//
//   megatron(vpp = 2, num_layers_per_stage = 4)     Llama(num_hidden_layers = 16)     train(mbs = 1)
//
// Algorithm: the library says such words already. Its launchers list flags with the parameter that each one sets, its
// import table the fields of configurations, and comments of parameters name flags in backticks and describe what the
// parameter is. The text of both files is read once an unknown word is looked for; a word is compared with all of them,
// first as it is, then without words that say nothing, such as `size`, then by its initials.
//
//   "--micro-batch-size" = train.microbatch;      micro_batch_size, mbs      microbatch
//   "L": "{num_hidden_layers:layers}"             n_hidden_layers            L
//   /// Layers (transformer blocks).              n_layers, layers           the parameter below
//   /// ... (`vpp`: `interleaved(v = 2)`)         vpp = 2                    write what stands behind the colon
//
// Limits: words are compared, never meanings. A value is not translated, except by the colon of a comment.
//
//===----------------------------------------------------------------------===//
#include "Meanings.h"
#include "stage/Sema/Builtins.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/Suggestions.h"
#include "stage/Support/Origins.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace stage;
using namespace stage::sema;
using llvm::dyn_cast;

/// The folder of the library, if a file of it is loaded; empty: none is.
static std::string findLibrary(const Program &program) {
  for (const ast::File *file : program.getFiles())
    if (!file->decls.empty() && program.isOfLibrary(*file->decls.front()))
      return llvm::sys::path::parent_path(file->path).str();
  return "";
}

/// The lines of a file of the library.
static void forEachLine(StringRef folder, StringRef name, llvm::function_ref<void(StringRef)> visit) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  llvm::SmallVector<StringRef, 0> lines;
  if (buffer)
    (*buffer)->getBuffer().split(lines, '\n');
  llvm::for_each(lines, visit);
}

/// The first words of each line of the library that begin a declaration: `module`, `Greedy`.
static void forEachLibraryDecl(const Program &program, llvm::function_ref<void(StringRef kind, StringRef name)> visit) {
  std::string folder = findLibrary(program);
  std::error_code error;
  if (folder.empty())
    return;
  for (llvm::sys::fs::directory_iterator it(folder, error), end; it != end && !error; it.increment(error))
    if (StringRef name = llvm::sys::path::filename(it->path()); name.endswith(".stg"))
      forEachLine(folder, name, [&](StringRef line) {
        StringRef kind = line.take_while(llvm::isAlpha);
        StringRef declared = line.drop_front(kind.size());
        if (!kind.empty() && declared.consume_front(" "))
          visit(kind, declared.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; }));
      });
}

bool stage::sema::suggestImportOfKind(DiagnosticBuilder &error, const Program &program, StringRef name,
                                      StringRef kind) {
  bool isOfKind = false;
  forEachLibraryDecl(program,
                     [&](StringRef word, StringRef declared) { isOfKind |= word == kind && declared == name; });
  return isOfKind && program.suggestImport(error, name);
}

void stage::sema::suggestImportUnlessVisible(DiagnosticBuilder &error, const Program &program, StringRef name,
                                             const ast::File &from) {
  if (!program.lookup(from, name))
    program.suggestImport(error, name);
}

/// The configs of the library and of the program that are for a model, sorted.
static std::vector<std::string> listConfigs(const Program &program, const ast::ModuleDecl &model) {
  std::vector<std::string> names;
  for (const ast::File *file : program.getFiles())
    for (const ast::Decl *decl : file->decls)
      if (auto *config = dyn_cast<ast::ConfigDecl>(decl))
        if (config->model.name == model.name.name)
          names.push_back(config->name.name.str());
  std::string folder = findLibrary(program);
  for (StringRef file : {StringRef("configs.stg"), llvm::sys::path::filename(program.getFile(model).path)})
    forEachLine(folder, file, [&](StringRef line) {
      if (!line.consume_front("config "))
        return;
      auto [name, behind] = line.ltrim().split(' ');
      auto [before, of] = behind.split("for ");
      if (of.take_while(llvm::isAlnum) == model.name.name && !llvm::is_contained(names, name.str()))
        names.push_back(name.str());
    });
  llvm::sort(names);
  return names;
}

namespace {
/// A word of another tool that the library explains: a flag of a launcher, or a field of a configuration.
struct ForeignWord {
  std::string word;   ///< `--micro-batch-size`
  std::string target; ///< `tp`, `train.microbatch`, `Llama.L`; empty: no plan depends on the word.
  std::string value;  ///< What the target has where the word is a flag alone, or what has the target as an argument.
};
} // namespace

/// `"--sequence-parallel" if sequence_parallel;`, `"--vp" = order.v if order == interleaved;`, `"--lr" ignored;`.
static void readFlags(StringRef line, std::vector<ForeignWord> &words) {
  StringRef rest = line.ltrim();
  llvm::SmallVector<StringRef, 4> flags;
  while (rest.consume_front("\"")) {
    auto [flag, behind] = rest.split('"');
    flags.push_back(flag);
    rest = behind.ltrim(", ");
  }
  bool isIgnored = rest.startswith("ignored");
  auto [before, condition] = rest.rtrim("; ").split("if ");
  std::string target =
      before.ltrim("= ").take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; }).str();
  std::string value;
  if (StringRef right = condition.split("== ").second; !right.empty())
    value = right.trim().str();
  bool isFlagAlone = target.empty() && !condition.empty();
  if (isFlagAlone) {
    target = condition.take_while([](char c) { return llvm::isAlnum(c) || c == '_' || c == '.'; }).str();
    if (StringRef right = condition.split(">= ").second; !right.empty())
      value = right.trim().str();
    if (value.empty() && condition == target)
      value = "true";
    if (value.empty())
      return;
  } else if (!target.empty() && !StringRef(target).contains('.')) {
    value.clear(); // `= recompute if recompute != none`
  }
  for (StringRef flag : flags)
    if (!flag.contains('=') && !flag.contains('[') && (isIgnored || !target.empty()))
      words.push_back({flag.str(), isIgnored ? "" : target, isIgnored ? "" : value});
}

/// `"L": "{num_hidden_layers:layers}", "D": "{hidden_size}"`.
static void readFields(StringRef line, std::vector<ForeignWord> &words) {
  while (line.contains("\": ")) {
    auto [before, behind] = line.split("\": ");
    StringRef param = before.rsplit('"').second, value = behind.ltrim("[\"");
    line = behind;
    if (!value.consume_front("{") || !llvm::all_of(param, llvm::isAlnum))
      continue;
    StringRef field = value.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    words.push_back({field.str(), param.str(), ""});
  }
}

/// Read anew for each message, which few programs have.
static std::vector<ForeignWord> listForeignWords(const Program &program) {
  std::vector<ForeignWord> words;
  std::string folder = findLibrary(program);
  if (folder.empty())
    return words;
  forEachLine(folder, "launchers.stg", [&](StringRef line) { readFlags(line, words); });
  forEachLine(folder, "huggingface.json", [&](StringRef line) { readFields(line, words); });
  return words;
}

/// `--Micro-Batch-Size` -> micro_batch_size.
static std::string normalize(StringRef word) {
  std::string result = word.ltrim("-").lower();
  std::replace(result.begin(), result.end(), '-', '_');
  std::replace(result.begin(), result.end(), ' ', '_');
  return result;
}

/// Without words that say only that it is a number: `num_layers` and `n_layer` are `layers`.
static std::string reduceWord(StringRef word) {
  std::string lower = normalize(word);
  llvm::SmallVector<StringRef, 6> parts;
  StringRef(lower).split(parts, '_', -1, /*KeepEmpty=*/false);
  static constexpr StringRef counts[] = {"n", "num", "number", "nr"};
  bool isCount = !parts.empty() && llvm::is_contained(counts, parts.front());
  static constexpr StringRef empty[] = {"n",     "num",    "number", "nr",    "of",       "size",
                                        "sizes", "degree", "dim",    "model", "parallel", "parallelism",
                                        "world", "count",  "the",    "ranks", "rank",     "width",
                                        "group", "per",    "enable", "use",   "to",       "ways"};
  std::string result;
  for (StringRef part : parts)
    if (!llvm::is_contained(empty, part))
      result += (result.empty() ? "" : "_") + part.str();
  if (isCount && !result.empty() && result.back() != 's')
    result += 's';
  return result;
}

static std::string getInitials(StringRef word) {
  std::string lower = normalize(word), result;
  llvm::SmallVector<StringRef, 6> parts;
  StringRef(lower).split(parts, '_', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts)
    result += part.front();
  return result;
}

/// What the comments of a parameter call it: its first word, what stands in parentheses, and all in backticks.
static void forEachAlias(const ast::Param &param, llvm::function_ref<void(StringRef alias, StringRef instead)> visit) {
  std::string whole;
  for (StringRef line : param.doc)
    whole += (whole.empty() ? "" : " ") + line.trim().str();
  StringRef rest = whole;
  visit(rest.take_while(llvm::isAlpha), "");
  for (StringRef text = rest; text.contains('(');) {
    text = text.split('(').second;
    visit(text.take_until([](char c) { return c == ')'; }), "");
  }
  while (rest.contains('`')) {
    auto [span, behind] = rest.split('`').second.split('`');
    StringRef instead;
    if (behind.startswith(": `"))
      instead = behind.drop_front(3).split('`').first;
    StringRef word = span.take_while([](char c) { return c != ' ' && c != '=' && c != '('; });
    StringRef last = word.rsplit('.').second;
    visit(last.empty() ? word : last, instead);
    rest = behind;
  }
}

static const ast::Param *findParam(ArrayRef<ast::Param> params, StringRef name) {
  auto found = llvm::find_if(params, [&](const ast::Param &param) { return param.name.name == name; });
  return found == params.end() ? nullptr : found;
}

/// How a flag of a launcher is said here, of a parameter of `params`; null: of none.
static const ast::Param *readForeign(const ForeignWord &word, ArrayRef<ast::Param> params, StringRef value,
                                     std::string &form) {
  StringRef target = word.target;
  auto [owner, last] = target.split('.');
  if (last.empty() || !findParam(params, owner)) {
    const ast::Param *param = findParam(params, last.empty() ? owner : last);
    if (param && word.value.empty())
      return param;
    if (param)
      form = (param->name.name + " = " + word.value).str();
    return param;
  }
  // `pipeline_schedule.v if pipeline_schedule == interleaved`.
  if (word.value.empty())
    return nullptr;
  form = (owner + " = " + word.value + "(" + last + " = " + (value.empty() ? "2" : value) + ")").str();
  return findParam(params, owner);
}

const ast::Param *stage::sema::findMeant(const Program &program, ArrayRef<ast::Param> params, StringRef name,
                                         StringRef value, std::string &form) {
  using Change = std::string (*)(StringRef);
  for (Change change : {static_cast<Change>(normalize), static_cast<Change>(reduceWord)}) {
    std::string wanted = change(name);
    if (wanted.empty())
      continue;
    const ast::Param *found = nullptr;
    for (const ast::Param &param : params) {
      bool isMeant = change(param.name.name) == wanted;
      std::string said;
      forEachAlias(param, [&](StringRef alias, StringRef instead) {
        if (alias.empty() || isMeant || change(alias) != wanted)
          return;
        isMeant = true;
        if (!instead.empty() && instead.split('(').first.contains('='))
          said = instead.str();
        else if (!instead.empty())
          said = (param.name.name + " = " + instead).str();
      });
      if (isMeant && !found) {
        found = &param;
        form = said;
      }
    }
    if (found)
      return found;
    for (const ForeignWord &word : listForeignWords(program))
      if (!word.target.empty() && change(word.word) == wanted)
        if (const ast::Param *param = readForeign(word, params, value, form))
          return param;
  }
  if (name.size() > 1 && name.size() < 5)
    for (const ForeignWord &word : listForeignWords(program))
      if (!word.target.empty() && getInitials(word.word) == name.lower())
        if (const ast::Param *param = readForeign(word, params, value, form))
          return param;
  return nullptr;
}

StringRef stage::sema::findMeant(const Program &program, ArrayRef<Candidate> known, StringRef name) {
  auto find = [&](StringRef meant) -> StringRef {
    auto found = llvm::find_if(known, [&](const Candidate &candidate) { return candidate.name == meant; });
    return found == known.end() ? StringRef() : found->name;
  };
  std::string reduced = reduceWord(name);
  for (const Candidate &candidate : known)
    if (!reduced.empty() && reduceWord(candidate.name) == reduced)
      return candidate.name;
  for (int pass : {0, 1})
    for (const ForeignWord &word : listForeignWords(program)) {
      bool fits = pass == 0 ? !reduced.empty() && reduceWord(word.word) == reduced
                            : name.size() > 1 && name.size() < 5 && getInitials(word.word) == name.lower();
      StringRef last = StringRef(word.target).rsplit('.').second;
      if (!fits || word.target.empty())
        continue;
      if (StringRef meant = find(last.empty() ? StringRef(word.target) : last); !meant.empty())
        return meant;
    }
  return "";
}

void stage::sema::suggestMeant(DiagnosticBuilder &error, const Program &program, StringRef name, SMRange at,
                               ArrayRef<Candidate> candidates) {
  StringRef meant = findNearest(name, candidates) ? StringRef() : findMeant(program, candidates, name);
  if (meant.empty())
    return suggestNearest(error, name, at, candidates);
  auto found = llvm::find_if(candidates, [&](const Candidate &candidate) { return candidate.name == meant; });
  error.fixIt(at, meant);
  error.note(found->loc, diag::DidYouMean) << meant;
}

/// The strategy or model beside this one that has a parameter of this name, and all others that the call gives; of
/// several, the one whose name begins alike for longest.
static const ast::Decl *findOwner(const Program &program, ArrayRef<ast::Param> params, StringRef name,
                                  ArrayRef<StringRef> others) {
  const ast::Decl *own = nullptr, *best = nullptr;
  for (const ast::File *file : program.getFiles())
    for (const ast::Decl *decl : file->decls)
      if (ast::getParams(*decl).data() == params.data())
        own = decl;
  if (!own)
    return nullptr;
  auto countAlike = [&](const ast::Decl *decl) {
    StringRef a = own->name.name, b = decl->name.name;
    size_t same = 0;
    while (same < a.size() && same < b.size() && a[same] == b[same])
      ++same;
    return same;
  };
  for (const ast::Decl *decl : program.getFile(*own).decls) {
    ArrayRef<ast::Param> theirs = ast::getParams(*decl);
    bool isPart = llvm::any_of(theirs, [](const ast::Param &param) { return param.scalarKind.name == "axes"; });
    if (decl == own || decl->kind != own->kind || isPart || !findParam(theirs, name) ||
        !llvm::all_of(others, [&](StringRef other) { return findParam(theirs, other); }))
      continue;
    if (!best || countAlike(decl) > countAlike(best))
      best = decl;
  }
  return best;
}

/// `zero = 1`: what a flag that has no value of its own says of a parameter that is no truth; empty: nothing.
static std::string findFormOfFlag(const Program &program, const ast::Param &param, StringRef name) {
  for (const ForeignWord &word : listForeignWords(program))
    if (word.target == param.name.name && !word.value.empty() && word.value != "true" &&
        reduceWord(word.word) == reduceWord(name))
      return (param.name.name + " = " + word.value).str();
  return "";
}

bool stage::sema::suggestOwner(DiagnosticBuilder &error, const Program &program, ArrayRef<ast::Param> params,
                               StringRef name, ArrayRef<StringRef> others) {
  auto *owner = llvm::dyn_cast_or_null<ast::StrategyDecl>(findOwner(program, params, name, others));
  if (owner)
    error.note(findParam(owner->params, name)->name.loc(), diag::OtherHasParameter) << owner->name.name << name;
  return owner;
}

void stage::sema::explainArgument(DiagnosticBuilder &error, const Program *program, ArrayRef<ast::Param> params,
                                  const ast::Ident &name, StringRef value, ArrayRef<StringRef> others, SMRange call) {
  std::vector<Candidate> names;
  for (const ast::Param &param : params)
    names.push_back({param.name.name, param.name.loc()});
  static constexpr StringRef ofTensors[] = {"dim", "axis", "keepdim", "keepdims", "dims"};
  if (llvm::is_contained(ofTensors, name.name)) {
    error.note(SMLoc(), diag::NameInstead)
        << "on which dims it works, its declaration says: leave '" + name.name.str() + "' out";
    return;
  }
  auto isSpelledAlike = [&](const Candidate &known) { return known.name.equals_insensitive(name.name); };
  if (program && llvm::none_of(names, isSpelledAlike)) {
    if (suggestOwner(error, *program, params, name.name, others)) {
      setOrigin(error, SMRange(call.Start, call.Start)); // the name of another one is written there
      return;
    }
    std::string form;
    if (const ast::Param *meant = findMeant(*program, params, name.name, value, form)) {
      // `distributed_optimizer = true` is a value of `zero`, which is none of both.
      if (form.empty() && (value == "true" || value == "True"))
        form = findFormOfFlag(*program, *meant, name.name);
      if (!form.empty()) {
        error.note(meant->name.loc(), diag::WriteArgument) << name.name << form;
        return;
      }
      error.fixIt(name.range, meant->name.name);
      error.note(meant->name.loc(), diag::DidYouMean) << meant->name.name;
      return;
    }
  }
  // `F` is `FE`: the one parameter without an argument that begins so.
  llvm::erase_if(names, [&](const Candidate &known) { return llvm::is_contained(others, known.name); });
  auto beginsSo = [&](const Candidate &known) { return known.name.startswith(name.name); };
  if (!findNearest(name.name, names) && llvm::count_if(names, beginsSo) == 1) {
    const Candidate &meant = *llvm::find_if(names, beginsSo);
    error.fixIt(name.range, meant.name);
    error.note(meant.loc, diag::DidYouMean) << meant.name;
    return;
  }
  suggestNearest(error, name.name, name.range, names);
}

std::string stage::sema::getText(SMRange range) {
  std::string text;
  if (!range.isValid())
    return text;
  StringRef source(range.Start.getPointer(), size_t(range.End.getPointer() - range.Start.getPointer()));
  for (char c : source)
    if (c != '\n')
      text += c;
    else if (!text.empty() && text.back() != ' ')
      text += ' ';
  return text;
}

/// A value that a parameter may have.
static std::string getExample(const ast::Param &param) {
  if (auto *list = llvm::dyn_cast_or_null<ast::ListExpr>(param.legal))
    if (!list->elements.empty())
      return ast::textOf(list->elements.front());
  return llvm::StringSwitch<std::string>(param.scalarKind ? param.scalarKind.name : StringRef())
      .Case("real", "1.0e4")
      .Case("bool", "true")
      .Case("bytes", "25MiB")
      .Case("time", "2us")
      .Case("rate", "100GB/s")
      .Case("type", "bf16")
      .Case("schedule", "one_f_one_b")
      .Case("axes", "dp")
      .Default("2");
}

/// The call with one more argument: `rms_norm(x)` and `g`.
static std::string extendCall(StringRef callee, StringRef call, StringRef argument) {
  constexpr size_t longest = 100;
  if (call.size() > longest)
    return (callee + "(..., " + argument + ")").str();
  if (!call.contains('('))
    return (callee + "(" + argument + ")").str();
  StringRef inside = call.substr(0, call.rfind(')')).rtrim(" ,");
  return (inside + (inside.endswith("(") ? "" : ", ") + argument + ")").str();
}

void stage::sema::explainMissing(DiagnosticBuilder &error, StringRef callee, StringRef call, const ast::Param &param,
                                 bool isInSight) {
  StringRef name = param.name.name;
  if (!param.tensor) {
    std::string value = isInSight ? name.str() : getExample(param);
    error.note(param.name.loc(), diag::ParameterMissing)
        << name << extendCall(callee, call, isInSight && !call.contains('=') ? value : (name + " = " + value).str());
    return;
  }
  std::string dims;
  for (const ast::ShapeDim &dim : param.tensor->dims)
    dims += (dims.empty() ? "" : ", ") + (dim.index ? dim.index.name.str() : dim.size ? ast::textOf(dim.size) : "...");
  error.note(param.name.loc(), diag::TensorParameterHere)
      << name << dims << extendCall(callee, call, call.contains('=') ? (name + " = " + name).str() : name.str());
}

void stage::sema::explainMissingSizes(DiagnosticBuilder &error, const Program &program, const ast::ModuleDecl &model,
                                      StringRef call, const ast::ConfigDecl *config, ArrayRef<StringRef> missing) {
  std::string arguments, entries;
  for (StringRef name : missing) {
    arguments += (arguments.empty() ? "" : ", ") + name.str() + " = ...";
    entries += (entries.empty() ? "" : " ") + name.str() + " = ...;";
  }
  StringRef name = model.name.name;
  if (config) {
    setOrigin(error, config->name.range); // the place of the message, unless the config is the library's
    error.note(program.isOfLibrary(*config) ? config->name.loc() : SMLoc(), diag::ConfigLacks)
        << config->name.name << entries;
    return;
  }
  std::vector<std::string> configs = listConfigs(program, model);
  if (!configs.empty() && missing.size() > 1) {
    constexpr size_t mostShown = 8;
    std::string first = configs.front(), all;
    if (configs.size() > mostShown)
      configs.resize(mostShown);
    error.note(SMLoc(), diag::ConfigsOfModel) << llvm::join(configs, ", ") << name << (name + "(" + first + ")").str();
    return;
  }
  const ast::Param *param = findParam(model.params, missing.front());
  error.note(param->name.loc(), diag::SizesOfConfig) << name << entries << extendCall(name, call, arguments);
}

StringRef stage::sema::findEntryHint(StringRef owner, StringRef name) {
  std::string lower = name.lower();
  using Words = llvm::StringSwitch<StringRef>;
  if (owner == "job")
    return Words(lower)
        .Cases("gpus", "num_gpus", "ngpus", "world_size", "ranks", "nodes", "num_nodes", "devices",
               "the ranks of a job are those of its strategy's mesh, as in 'megatron(dp = 4, tp = 8)'; plans for a "
               "number of ranks are found by 'search { gpus = 64; }' and 'stagec plan'")
        .Cases("dtype", "type", "mixed_precision", "precisions", "amp",
               "element types are said by the precision, as in 'precision = bf16_mixed;'")
        .Cases("parallelism", "parallel", "shard", "mesh", "plan", "sharding",
               "the split over ranks is said by the strategy, as in 'strategy = megatron(dp = 4, tp = 8);'")
        .Cases("hardware", "device", "gpu", "cluster", "system",
               "rates and capacities are said by a machine, as in 'machine = h100;'")
        .Cases(
            "memory", "memory_limit", "max_memory", "limit", "budget", "capacity",
            "what fits is asked by '--fits=80GB' and by 'require memory <= 80GB;' of a search; the memory of a device "
            "is 'memory.capacity = 80GB;' of its machine")
        .Cases("framework", "software", "backend", "the software is said by a runtime, as in 'runtime = pytorch;'")
        .Cases("optimizer", "batch", "batch_size", "microbatch", "train", "training", "task", "b", "s",
               "it belongs to the step, as in 'step = train(B = 8, S = 1024, microbatch = 1, optimizer = adamw);'")
        .Default("");
  if (owner == "machine")
    return Words(lower)
        .Cases("memory", "capacity", "memory.size", "hbm", "the memory of a device is 'memory.capacity = 80GB;'")
        .Cases("bandwidth", "memory_bandwidth", "memory.bandwidth", "memory.speed", "hbm_bandwidth",
               "bytes per second of a device's memory are 'memory.rate = 3.35TB/s;'")
        .Cases("flops", "tflops", "peak", "peak_flops", "compute",
               "operations per second have a type, as in 'flops.bf16 = 989TFLOP/s;'")
        .Cases("ranks", "gpus", "nodes", "size", "devices", "network", "links", "link", "rate", "nvlink",
               "ranks and links are said by levels, as in 'level node { ranks = 8; rate = 450GB/s; }'")
        .Cases("latency", "hop", "base",
               "a latency is that of a level, as in 'level rail { ranks = 1Ki; rate = 50GB/s; hop = 2us; }'")
        .Cases("cost", "price_per_hour", "a price is 'price = 2.50USD/h;'")
        .Cases("power", "tdp", "a power is 'power.busy = 700W;' and 'power.idle = 100W;'")
        .Default("");
  if (owner == "level")
    return Words(lower)
        .Cases("bandwidth", "speed", "link", "throughput", "bytes per second are 'rate = 450GB/s;'")
        .Cases("latency", "delay", "alpha", "lat", "a latency is 'hop = 2us;', or 'base = 5us;' of a whole collective")
        .Cases("gpus", "size", "devices", "count", "n", "nodes", "degree", "world_size",
               "ranks of a group are 'ranks = 8;'")
        .Cases("topology", "type", "a topology is 'kind = ring;' or 'kind = switch;'")
        .Default("");
  if (owner == "runtime")
    return Words(lower)
        .Cases("overhead", "kernel_launch", "launch_time", "launch.time", "latency",
               "the time of a kernel's launch is 'launch = 5us;'")
        .Cases("memory", "workspace", "memory that software keeps is 'reserve = 2GiB;'")
        .Default("");
  if (owner == "precision")
    return Words(lower)
        .Cases("parameters", "params", "param", "parameter", "the type of parameters is 'weight = bf16;'")
        .Cases("compute", "activations", "act", "the type of activations is 'activation = bf16;'")
        .Cases("grad", "grads", "reduce", "the type of gradients is 'gradient = f32;'")
        .Default("");
  if (owner == "optimizer")
    return Words(lower)
        .Cases("state", "states", "moments", "buffers", "states are declared, as in 'state master, m, v: f32;'")
        .Cases("cost", "ops", "flop", "operations of an update are 'flops = 14 * volume;'")
        .Default("");
  return "";
}

/// Whether a model has a size or a dim of this name.
bool stage::sema::hasDim(const ast::ModuleDecl &model, StringRef name) {
  for (const ast::Param &param : model.params)
    if (param.name.name == name)
      return true;
  for (const ast::Stmt *stmt : model.body)
    if (auto *dim = dyn_cast<ast::DimStmt>(stmt))
      for (const ast::Ident &known : dim->names)
        if (known.name == name)
          return true;
  return false;
}
