//===- Program.cpp - the files of a program and their names ---------------===//
#include "stage/Sema/Program.h"
#include "stage/Parse/Parse.h"
#include "stage/Sema/Diagnostics.h"
#include "stage/Sema/KeptBindings.h"
#include "stage/Sema/Suggestions.h"
#include "stage/Support/Files.h"
#include "stage/Support/Origins.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace stage;
using namespace stage::sema;

namespace {
using Decls = llvm::SmallVector<const ast::Decl *, 2>;

/// Adds a declaration unless it is there: a file may be imported twice.
void addDecl(Decls &decls, const ast::Decl *decl) {
  if (!llvm::is_contained(decls, decl))
    decls.push_back(decl);
}

bool isStd(StringRef path) { return path.startswith("std."); }

/// `a.b.c` below a folder.
std::string pathOf(StringRef folder, StringRef dotted) {
  llvm::SmallString<128> path(folder);
  llvm::SmallVector<StringRef, 4> parts;
  dotted.split(parts, '.');
  for (StringRef part : parts)
    llvm::sys::path::append(path, part);
  path += ".stg";
  return path.str().str();
}

/// The names of the .stg files beside `path`, for a suggestion. `storage` keeps them.
std::vector<Candidate> neighbours(StringRef path, std::vector<std::string> &storage) {
  std::error_code error;
  StringRef folder = llvm::sys::path::parent_path(path);
  for (llvm::sys::fs::directory_iterator it(folder.empty() ? "." : folder, error), end; it != end && !error;
       it.increment(error))
    if (llvm::sys::path::extension(it->path()) == ".stg")
      storage.push_back(llvm::sys::path::stem(it->path()).str());
  llvm::sort(storage);
  std::vector<Candidate> result;
  for (const std::string &name : storage)
    result.push_back({name, SMLoc()});
  return result;
}
} // namespace

/// The names of one file, by where they come from.
struct Program::Scope {
  llvm::StringMap<const ast::Decl *> own;
  llvm::StringMap<Decls> named;         ///< Imported by name.
  std::vector<const ast::File *> whole; ///< Imported without a list.
};

Program::Program(ast::ASTContext &context, DiagnosticEngine &diags, ProgramOptions options)
    : context(context), diags(diags), options(std::move(options)), bindings(std::make_unique<KeptBindings>()) {}
Program::Program(const Program &loaded, ast::ASTContext &context, DiagnosticEngine &diags)
    : context(context), diags(diags), options(loaded.options), main(loaded.main), preludes(loaded.preludes),
      files(loaded.files), byPath(loaded.byPath), scopes(loaded.scopes), fileOf(loaded.fileOf),
      bindings(std::make_unique<KeptBindings>()), legalWords(loaded.legalWords) {}
Program::~Program() = default;

const ast::File *Program::load(StringRef path) {
  loadPreludes();
  const ast::File *file = loadPath(path.str(), SMRange());
  if (!main)
    main = file;
  return file;
}

const ast::File *Program::loadBuffer(unsigned bufferId, StringRef path) {
  loadPreludes();
  loading.push_back({path.str(), path.str(), SMRange()});
  const ast::File *file = parse(bufferId);
  loading.pop_back();
  if (!main)
    main = file;
  return file;
}

/// Every file sees what the prelude imports. It is an ordinary file, and optional, as all of a library are.
void Program::loadPreludes() {
  if (!preludes.empty() || main || options.stdlibDir.empty())
    return;
  auto loadOne = [&](const std::string &stem) {
    std::string path = pathOf(options.stdlibDir, stem);
    const ast::File *file = llvm::sys::fs::exists(path) ? loadPath(path, SMRange()) : nullptr;
    if (file)
      preludes.push_back(file);
  };
  loadOne("prelude");
  llvm::for_each(options.libraries, loadOne);
}

/// The program of the same folder that has this name with another ending; empty: none.
static std::string findFileLike(StringRef path) {
  llvm::SmallString<128> other = path;
  llvm::sys::path::replace_extension(other, ".stg");
  return other != path && llvm::sys::fs::exists(other) ? other.str().str() : "";
}

const ast::File *Program::loadPath(const std::string &path, SMRange importedAt) {
  llvm::SmallString<128> real;
  if (path == "-" || llvm::sys::fs::real_path(path, real))
    real = path; // an error is found again when the file is read
  std::string key = real.str().str();
  if (llvm::any_of(loading, [&](const Loading &entry) { return entry.key == key; })) {
    reportCycle(key, importedAt);
    return nullptr;
  }
  auto known = byPath.find(key);
  if (known != byPath.end())
    return known->second;

  // Each level is one on the stack.
  constexpr size_t maxDepth = 100;
  if (loading.size() >= maxDepth) {
    diags.report(importedAt.Start, diag::ImportsTooDeep).range(importedAt) << int64_t(maxDepth);
    return nullptr;
  }
  const ast::File *file = nullptr;
  std::string error;
  auto buffer = readFile(path, error);
  if (!buffer) {
    std::string like = importedAt.isValid() ? "" : findFileLike(path);
    diags.report(importedAt.Start, diag::CannotReadFile)
        << path << error + (like.empty() ? "" : "; did you mean '" + like + "'?");
  } else {
    loading.push_back({key, path, importedAt});
    file = parse(diags.getSources().AddNewSourceBuffer(std::move(buffer), SMLoc()));
    loading.pop_back();
  }
  byPath[key] = file;
  return file;
}

/// Parses a buffer and loads what it imports. The chain `loading` ends in it.
const ast::File *Program::parse(unsigned bufferId) {
  ast::File *file = parseFile(context, diags, bufferId, options.cache);
  if (!file)
    return nullptr;
  file->path = context.copy(StringRef(loading.back().path));
  auto scope = std::make_unique<Scope>();
  declare(*file, *scope);
  for (const ast::Import &import : file->imports)
    if (const ast::File *imported = loadImport(*file, import))
      declareImport(import, *imported, *scope);
  scopes[file] = std::move(scope);
  files.push_back(file);
  return file;
}

const ast::File *Program::loadImport(const ast::File &from, const ast::Import &import) {
  std::vector<std::string> tried;
  if (isStd(import.path)) {
    // Without a standard library the name of its folder is shown.
    tried.push_back(pathOf(options.stdlibDir.empty() ? "<stdlib>" : options.stdlibDir, import.path.drop_front(4)));
  } else {
    tried.push_back(pathOf(llvm::sys::path::parent_path(from.path), import.path));
    for (const std::string &folder : options.includeDirs)
      tried.push_back(pathOf(folder, import.path));
  }
  for (const std::string &path : tried)
    if (llvm::sys::fs::exists(path))
      return loadPath(path, import.range);

  // `import std.transformer.Llama;`, `import transformer;`
  auto [folder, name] = import.path.rsplit('.');
  std::string instead;
  if (!libraryIsRead)
    indexLibrary();
  auto findFile = [&](StringRef declared) -> StringRef {
    auto found = library.find(declared);
    return found == library.end() ? StringRef() : StringRef(found->second.file);
  };
  if (isStd(import.path) && folder.contains('.') && findFile(name) == folder)
    instead = (folder + " (" + name + ")").str();
  else if (!isStd(import.path) && !options.stdlibDir.empty() &&
           llvm::sys::fs::exists(pathOf(options.stdlibDir, import.path)))
    instead = "std." + import.path.str();
  else if (!findFile(import.path).empty())
    instead = (findFile(import.path) + " (" + import.path + ")").str();
  DiagnosticBuilder error = diags.report(import.range.Start, diag::ImportNotFound).range(import.range)
                            << import.path << llvm::join(tried, ", ");
  if (!instead.empty()) {
    error.note(SMLoc(), diag::NameInstead) << "write 'import " + instead + ";'";
    return nullptr;
  }
  std::vector<std::string> storage;
  std::vector<Candidate> candidates = neighbours(tried.front(), storage);
  StringRef last = import.path.rsplit('.').second;
  if (const Candidate *nearest = findNearest(last.empty() ? import.path : last, candidates))
    error.note(SMLoc(), diag::DidYouMean)
        << (last.empty() ? nearest->name.str() : (import.path.rsplit('.').first + "." + nearest->name).str());
  return nullptr;
}

void Program::reportCycle(const std::string &key, SMRange importedAt) {
  auto first = llvm::find_if(loading, [&](const Loading &entry) { return entry.key == key; });
  std::string chain;
  for (auto it = first; it != loading.end(); ++it)
    chain += it->path + " -> ";
  DiagnosticBuilder error = diags.report(importedAt.Start, diag::ImportCycle).range(importedAt)
                            << first->path << chain + first->path;
  if (first + 1 == loading.end())
    error.note(SMLoc(), diag::RenameImporter) << llvm::sys::path::filename(first->path);
  for (auto it = first + 1; it < loading.end(); ++it)
    error.note(it->importedAt.Start, diag::ImportedHere) << it->path;
}

void Program::declare(const ast::File &file, Scope &scope) {
  for (const ast::Decl *decl : file.decls) {
    fileOf[decl] = &file;
    for (const ast::Param &param : ast::getParams(*decl))
      if (auto *legal = llvm::dyn_cast_or_null<ast::ListExpr>(param.legal))
        for (const ast::Expr *value : legal->elements)
          if (auto *word = llvm::dyn_cast<ast::NameExpr>(value))
            legalWords.insert(word->name);
    auto [it, isNew] = scope.own.try_emplace(decl->name.name, decl);
    if (!isNew)
      diags.report(decl->name.loc(), diag::Redefinition)
          .range(decl->name.range)
          .with(decl->name.name)
          .note(it->second->name.loc(), diag::PreviousHere)
          .with(decl->name.name);
  }
}

void Program::declareImport(const ast::Import &import, const ast::File &imported, Scope &scope) {
  if (import.all) {
    scope.whole.push_back(&imported);
    return;
  }
  const llvm::StringMap<const ast::Decl *> &theirs = scopes[&imported]->own;
  for (const ast::Ident &name : import.names) {
    auto found = theirs.find(name.name);
    if (found == theirs.end()) {
      std::vector<Candidate> candidates;
      for (const auto &entry : theirs)
        candidates.push_back({entry.getKey(), entry.getValue()->name.loc()});
      DiagnosticBuilder error = diags.report(name.loc(), diag::UnknownImport).range(name.range)
                                << import.path << name.name;
      if (!suggestImport(error, name.name))
        suggestNearest(error, name.name, name.range, candidates);
      continue;
    }
    if (const ast::Decl *own = scope.own.lookup(name.name))
      diags.report(own->name.loc(), diag::Redefinition)
          .range(own->name.range)
          .with(name.name)
          .note(name.loc(), diag::ImportedHere)
          .with(name.name);
    addDecl(scope.named[name.name], found->second);
  }
}

/// What a file declares or imports.
llvm::SmallVector<const ast::Decl *, 2> Program::lookupInFile(const ast::File &from, StringRef name) const {
  const Scope &scope = *scopes.find(&from)->second;
  if (const ast::Decl *own = scope.own.lookup(name))
    return {own};
  auto named = scope.named.find(name);
  if (named != scope.named.end())
    return named->second;
  Decls found;
  for (const ast::File *file : scope.whole)
    if (const ast::Decl *decl = scopes.find(file)->second->own.lookup(name))
      addDecl(found, decl);
  return found;
}

llvm::SmallVector<const ast::Decl *, 2> Program::lookupAll(const ast::File &from, StringRef name) const {
  Decls found = lookupInFile(from, name);
  for (const ast::File *prelude : preludes)
    if (found.empty())
      found = lookupInFile(*prelude, name);
  return found;
}

const ast::Decl *Program::lookup(const ast::File &from, StringRef name) const {
  llvm::SmallVector<const ast::Decl *, 2> found = lookupAll(from, name);
  return found.empty() ? nullptr : found.front();
}

/// The words that begin a declaration of a name.
static const StringRef declWords[] = {"op ",        "module ",    "model ",  "strategy ", "schedule ",
                                      "optimizer ", "precision ", "config ", "job ",      "fn ",
                                      "launcher ",  "machine ",   "runtime "};

/// Looks at the beginnings of lines only: files that are not imported are not parsed.
void Program::indexLibrary() const {
  libraryIsRead = true;
  if (options.stdlibDir.empty())
    return;
  std::vector<std::string> stems;
  neighbours(pathOf(options.stdlibDir, "std"), stems);
  for (const std::string &stem : stems) {
    auto buffer = llvm::MemoryBuffer::getFile(pathOf(options.stdlibDir, stem), /*IsText=*/true);
    llvm::SmallVector<StringRef, 0> lines;
    if (buffer)
      (*buffer)->getBuffer().split(lines, '\n');
    for (StringRef line : lines)
      for (StringRef word : declWords)
        if (line.consume_front(word)) {
          StringRef name = line.ltrim().take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
          library.try_emplace(name, LibraryPlace{"std." + stem, word.rtrim()});
          break;
        }
  }
}

bool Program::isInLibrary(StringRef name) const {
  if (!libraryIsRead)
    indexLibrary();
  return library.count(name);
}

bool Program::suggestImport(DiagnosticBuilder &error, StringRef name, const ast::File *from) const {
  if (!isInLibrary(name))
    return false;
  StringRef file = library.find(name)->second.file;
  for (const ast::Import &import : from ? from->imports : ArrayRef<ast::Import>()) {
    if (import.all || import.path != file)
      continue;
    std::string names;
    for (const ast::Ident &known : import.names)
      names += known.name.str() + ", ";
    setOrigin(error, import.range);
    error.note(SMLoc(), diag::NameInstead) << "this import lists names, and '" + name.str() +
                                                  "' is none of them: write 'import " + file.str() + " (" + names +
                                                  name.str() + ");'";
    return true;
  }
  error.note(SMLoc(), diag::DeclaredInLibrary) << name << library.find(name)->second.file;
  return true;
}

const ast::File &Program::getFile(const ast::Decl &decl) const { return *fileOf.lookup(&decl); }

bool Program::isOfLibrary(const ast::Decl &decl) const {
  return !options.stdlibDir.empty() && llvm::sys::path::parent_path(getFile(decl).path) == options.stdlibDir;
}

std::vector<Candidate> Program::getVisibleNames(const ast::File &from) const {
  llvm::StringMap<SMLoc> names;
  auto add = [&](const ast::Decl *decl) { names.try_emplace(decl->name.name, decl->name.loc()); };
  llvm::SmallVector<const ast::File *, 4> seen = {&from};
  seen.append(preludes.begin(), preludes.end());
  for (const ast::File *file : seen) {
    const Scope &scope = *scopes.find(file)->second;
    for (const auto &entry : scope.own)
      add(entry.getValue());
    for (const auto &entry : scope.named)
      add(entry.getValue().front());
    for (const ast::File *whole : scope.whole)
      for (const ast::Decl *decl : whole->decls)
        add(decl);
  }
  std::vector<Candidate> result;
  for (const auto &entry : names)
    result.push_back({entry.getKey(), entry.getValue()});
  // The keys belong to the map; the AST's text stays.
  for (Candidate &candidate : result)
    candidate.name = lookup(from, candidate.name)->name.name;
  llvm::sort(result, [](const Candidate &a, const Candidate &b) { return a.name < b.name; });
  return result;
}

/// Of as many names a reader sees what is meant, and an abbreviation is one of few.
static constexpr size_t mostListed = 40;

static llvm::SmallVector<StringRef, 4> splitWords(StringRef name) {
  llvm::SmallVector<StringRef, 4> words, parts;
  name.split(words, '_', -1, /*KeepEmpty=*/false);
  for (StringRef word : words)
    word.split(parts, '-', -1, /*KeepEmpty=*/false);
  return parts;
}

/// `--tensor-parallel-size` is `--tensor-model-parallel-size`: all of its words are there, in this order.
static const Candidate *findWithMoreWords(StringRef name, ArrayRef<Candidate> candidates) {
  llvm::SmallVector<StringRef, 4> words = splitWords(name);
  const Candidate *found = nullptr;
  for (const Candidate &candidate : candidates) {
    llvm::SmallVector<StringRef, 4> theirs = splitWords(candidate.name);
    size_t same = 0;
    for (StringRef word : theirs)
      same += same < words.size() && word == words[same];
    if (words.size() > 1 && same == words.size() && theirs.front() == words.front() && candidate.name != name &&
        (!found || candidate.name.size() < found->name.size()))
      found = &candidate;
  }
  return found;
}

/// Whether `letters` stand in `word` in this order, the first ones alike: `fwd` in `forward`, `tp` in `tmps`.
static bool isAbbreviation(StringRef letters, StringRef word) {
  if (letters.empty() || word.empty() || llvm::toLower(letters[0]) != llvm::toLower(word[0]))
    return false;
  for (char letter : word)
    if (!letters.empty() && llvm::toLower(letters[0]) == llvm::toLower(letter))
      letters = letters.drop_front();
  return letters.empty();
}

/// `tensor_parallel_size` is `tp`, `fwd` is `forward`, `micro_batch_size` is `microbatch`. Of several the shortest.
static const Candidate *findAbbreviated(StringRef name, ArrayRef<Candidate> candidates) {
  std::string initials, joined;
  llvm::SmallVector<StringRef, 4> words = splitWords(name);
  for (StringRef word : words) {
    initials += word.front();
    joined += word;
  }
  const Candidate *found = nullptr;
  for (const Candidate &candidate : candidates) {
    bool fits = candidate.name.size() > 1 &&
                ((initials.size() > 1 && isAbbreviation(candidate.name, initials)) ||
                 (name.size() > 2 && isAbbreviation(name, candidate.name)) ||
                 (words.size() > 1 && candidate.name.size() > 3 && StringRef(joined).startswith(candidate.name)));
    if (fits && (!found || candidate.name.size() < found->name.size()))
      found = &candidate;
  }
  return found;
}

/// `num_gpus` is `gpus`, `peak_memory` is `memory`: a name that is one word of it; null: none, or several.
static const Candidate *findWordOf(StringRef name, ArrayRef<Candidate> candidates) {
  llvm::SmallVector<StringRef, 4> words = splitWords(name);
  const Candidate *found = nullptr;
  for (const Candidate &candidate : candidates) {
    if (words.size() < 2 || candidate.name.size() < 4 || !llvm::is_contained(words, candidate.name))
      continue;
    if (found && found->name != candidate.name)
      return nullptr;
    found = &candidate;
  }
  return found;
}

const Candidate *stage::sema::findNearest(StringRef name, ArrayRef<Candidate> candidates) {
  // A third of the letters may differ; of a name as short as `tp` only the case, or a letter too many. One letter says
  // too little.
  unsigned best = name.size() < 2 ? 0 : name.size() < 3 ? 1 : name.size() / 3 + 1;
  const Candidate *nearest = findWithMoreWords(name, candidates);
  if (nearest)
    return nearest;
  auto beginsAlike = [&](const Candidate &candidate) { return candidate.name.startswith(name.take_front()); };
  for (const Candidate &candidate : candidates) {
    if (candidate.name == name)
      continue;
    unsigned distance = name.equals_insensitive(candidate.name)
                            ? 0
                            : name.edit_distance(candidate.name, /*AllowReplacements=*/true, best);
    // Ties go to a name with the same first letter, then to the name that sorts first, whatever the order of the
    // candidates.
    bool winsTie =
        nearest && distance == best &&
        (beginsAlike(candidate) != beginsAlike(*nearest) ? beginsAlike(candidate) : candidate.name < nearest->name);
    if (distance < best || winsTie) {
      nearest = &candidate;
      best = distance;
    }
  }
  if (!nearest && name.size() == 2)
    for (const Candidate &candidate : candidates)
      if (candidate.name == name.take_front())
        return &candidate;
  // Of a name as short as `b2` one letter may be another, `b1`, or left out, `bs1`, but not the first.
  if (!nearest && name.size() == 2)
    for (const Candidate &candidate : candidates)
      if (candidate.name.size() > 1 && candidate.name.size() < 4 && candidate.name != name && beginsAlike(candidate) &&
          name.edit_distance(candidate.name) == 1 && (!nearest || candidate.name < nearest->name))
        nearest = &candidate;
  if (!nearest && candidates.size() <= mostListed)
    nearest = findAbbreviated(name, candidates);
  return nearest ? nearest : findWordOf(name, candidates);
}

/// The word that begins declarations like this one, of those that entries of a job name.
static StringRef getWord(const ast::Decl &decl) {
  if (auto *module = llvm::dyn_cast<ast::ModuleDecl>(&decl))
    return module->isModel ? "model" : "module";
  return llvm::isa<ast::StrategyDecl>(decl)    ? "strategy"
         : llvm::isa<ast::ScheduleDecl>(decl)  ? "schedule"
         : llvm::isa<ast::OptimizerDecl>(decl) ? "optimizer"
         : llvm::isa<ast::PrecisionDecl>(decl) ? "precision"
         : llvm::isa<ast::MachineDecl>(decl)   ? "machine"
         : llvm::isa<ast::RuntimeDecl>(decl)   ? "runtime"
         : llvm::isa<ast::JobDecl>(decl)       ? "job"
                                               : "";
}

void Program::suggestOfKind(DiagnosticBuilder &error, StringRef name, SMRange at, StringRef kind,
                            const ast::File &from) const {
  if (!libraryIsRead)
    indexLibrary();
  std::vector<Candidate> candidates;
  std::string places;
  for (const auto &entry : library)
    if (const LibraryPlace &place = entry.getValue(); place.kind == kind) {
      candidates.push_back({entry.getKey(), SMLoc()});
      if (!StringRef(places).contains(place.file))
        places += (places.empty() ? "" : ", ") + place.file;
    }
  for (const Candidate &visible : getVisibleNames(from))
    if (const ast::Decl *decl = lookup(from, visible.name))
      if (getWord(*decl) == kind && !library.count(visible.name))
        candidates.push_back(visible);
  llvm::sort(candidates, [](const Candidate &a, const Candidate &b) { return a.name < b.name; });
  // Names do not begin with a digit: `1f1b` is `one_f_one_b`.
  std::string spelled;
  for (char letter : name)
    spelled += letter == '1' ? (spelled.empty() ? "one_" : "_one_") : std::string(1, letter);
  const Candidate *nearest = findNearest(name, candidates);
  nearest = nearest ? nearest : findNearest(spelled, candidates);
  nearest = nearest ? nearest : findAbbreviated(name, candidates);
  if (nearest) {
    error.fixIt(at, nearest->name);
    error.note(nearest->loc, diag::DidYouMean) << nearest->name;
    if (!lookup(from, nearest->name))
      suggestImport(error, nearest->name);
    return;
  }
  if (candidates.empty() || candidates.size() > mostListed)
    return;
  std::vector<std::string> names;
  for (const Candidate &candidate : candidates)
    names.push_back(candidate.name.str());
  if (places.empty())
    error.note(SMLoc(), diag::ChooseOneOf) << llvm::join(names, ", ");
  else
    error.note(SMLoc(), diag::ChooseOfLibrary) << llvm::join(names, ", ") << places;
}

void stage::sema::suggestNearest(DiagnosticBuilder &error, StringRef name, SMRange at, ArrayRef<Candidate> candidates) {
  // The words of Python and YAML.
  StringRef truth = llvm::StringSwitch<StringRef>(name)
                        .Cases("True", "yes", "on", "true")
                        .Cases("False", "no", "off", "false")
                        .Default("");
  bool isOfYaml = name != "True" && name != "False" && name != "true" && name != "false";
  if (!truth.empty() && !(isOfYaml && findNearest(name, candidates))) {
    error.fixIt(at, truth);
    error.note(SMLoc(), diag::DidYouMean) << truth;
    return;
  }
  const Candidate *nearest = findNearest(name, candidates);
  if (!nearest) {
    std::vector<std::string> names;
    for (const Candidate &candidate : candidates)
      if (std::string known = candidate.name.str(); !llvm::is_contained(names, known))
        names.push_back(std::move(known));
    if (!names.empty() && names.size() <= mostListed)
      error.note(SMLoc(), diag::ChooseOneOf) << llvm::join(names, ", ");
    return;
  }
  error.fixIt(at, nearest->name);
  error.note(nearest->loc, diag::DidYouMean) << nearest->name;
}
