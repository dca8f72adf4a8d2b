//===- DocPages.cpp - the library as pages --------------------------------===//
//
// `stagec doc --all --markdown=docs/library` writes a page for each module of the library, and README.md with a line
// for each, by task as well. A page has each declaration with its signature, its comment, a table of its parameters,
// tables of the flags by which launchers say them, and an example. `Cookbook: zero.` in a comment becomes a link to
// that page of the cookbook. A test compares docs/library with what this writes.
//
//===----------------------------------------------------------------------===//
#include "DocPages.h"
#include "Options.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/Support/Files.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace stage;
using namespace stage::driver;
using llvm::StringRef;

std::string stage::driver::getPageName(StringRef module) { return StringRef(module).drop_front(4).str() + ".md"; }

/// `Cookbook: zero, offload.` in a comment names pages of the cookbook; on pages these names are links.
static std::string linkTasks(StringRef text) {
  constexpr StringRef mark = "Cookbook: ";
  auto [before, rest] = text.split(mark);
  if (before.size() == text.size())
    return text.str();
  auto [names, after] = rest.split('.');
  llvm::SmallVector<StringRef, 4> tasks;
  names.split(tasks, ", ");
  std::string links;
  for (StringRef task : tasks)
    links += (links.empty() ? "[" : ", [") + task.str() + "](../cookbook/" + task.str() + ".md)";
  return before.str() + mark.str() + links + "." + linkTasks(after);
}

std::string stage::driver::makeCell(const std::string &text) {
  std::string cell;
  for (char c : linkTasks(text))
    cell += c == '|' ? "\\|" : std::string(1, c);
  return cell;
}

static void printParams(llvm::raw_ostream &os, llvm::ArrayRef<ast::Param> params) {
  if (params.empty())
    return;
  os << "\n| parameter | meaning |\n|---|---|\n";
  bool isForwarded = false;
  for (const ast::Param &param : params) {
    if (param.isForwarded && !std::exchange(isForwarded, true))
      os << "| *forwarded to parts, for older programs:* | |\n";
    os << "| `" << makeCell(describe(param)) << "` | " << makeCell(llvm::join(param.doc, " ")) << " |\n";
  }
}

static void printFlags(llvm::raw_ostream &os, const ast::LauncherDecl &launcher) {
  os << "\n| argument | means |\n|---|---|\n";
  for (const ast::FlagStmt *flag : launcher.flags) {
    std::vector<std::string> names;
    for (const ast::StringExpr *name : flag->flags)
      names.push_back("`" + makeCell(name->text.str()) + "`");
    std::string says = describe(*flag);
    os << "| " << llvm::join(names, ", ") << " | " << (flag->isIgnored() ? says : "`" + makeCell(says) + "`");
    if (!flag->doc.empty())
      os << ". " << makeCell(llvm::join(flag->doc, " "));
    os << " |\n";
  }
}

/// Of a machine or a runtime.
static void printEntries(llvm::raw_ostream &os, const ast::Ident &base, llvm::ArrayRef<ast::Stmt *> body) {
  if (base)
    os << "\nAll entries of [" << base.name << "](#" << base.name << "), and in place of them:\n";
  os << "\n| entry | meaning |\n|---|---|\n";
  auto add = [&](const std::string &name, llvm::ArrayRef<StringRef> doc) {
    os << "| `" << makeCell(name) << "` | " << makeCell(llvm::join(doc, " ")) << " |\n";
  };
  for (const ast::Stmt *stmt : body) {
    if (auto *entry = llvm::dyn_cast<ast::EntryStmt>(stmt)) {
      add(entry->name.name.str() + " = " + ast::textOf(entry->value), entry->doc);
      continue;
    }
    if (auto *kernels = llvm::dyn_cast<ast::KernelStmt>(stmt)) {
      add(describeKernels(*kernels), kernels->doc);
      continue;
    }
    auto *level = llvm::cast<ast::LevelStmt>(stmt);
    add((level->base ? "level " + level->name.name + " extends " + level->base.name : "level " + level->name.name)
            .str(),
        level->doc);
    for (const ast::EntryStmt *entry : level->entries)
      add((level->name.name + "." + entry->name.name + " = ").str() + ast::textOf(entry->value), entry->doc);
  }
}

static void printEntry(llvm::raw_ostream &os, const DocEntry &entry, llvm::ArrayRef<DocEntry> all) {
  const ast::Decl &decl = *entry.decl;
  os << "\n## " << decl.name.name << "\n\n`" << getKeyword(decl) << ' ' << getSignature(decl) << "`\n";
  if (!decl.doc.empty())
    os << '\n' << linkTasks(llvm::join(decl.doc, "\n")) << '\n';
  printParams(os, ast::getParams(decl));
  if (auto *launcher = llvm::dyn_cast<ast::LauncherDecl>(&decl))
    printFlags(os, *launcher);
  if (auto *machine = llvm::dyn_cast<ast::MachineDecl>(&decl))
    printEntries(os, machine->base, machine->body);
  if (auto *runtime = llvm::dyn_cast<ast::RuntimeDecl>(&decl))
    printEntries(os, runtime->base, runtime->body);
  std::vector<std::string> example = getExample(entry, all);
  if (!example.empty())
    os << "\n```\n" << llvm::join(example, "\n") << "\n```\n";
  if (!llvm::isa<ast::StrategyDecl>(&decl))
    return;
  for (const DocEntry &other : all)
    if (auto *launcher = llvm::dyn_cast<ast::LauncherDecl>(other.decl);
        launcher && launcher->strategy.name == decl.name.name)
      os << "\nArguments of a framework: [" << launcher->name.name << "](" << getPageName(other.module) << "#"
         << launcher->name.name << ").\n";
}

std::vector<DocPage> stage::driver::makePages(llvm::ArrayRef<DocModule> modules, llvm::ArrayRef<DocEntry> all) {
  std::vector<DocPage> pages;
  std::string index =
      "# The standard library\n\nWritten by `stagec doc --all --markdown=docs/library` from the comments in "
      "[stdlib](../../stdlib). The [cookbook](../cookbook/README.md) has whole programs.\n" +
      makeTaskIndex(modules, all) + "\n## All modules\n\n| module | contents |\n|---|---|\n";
  for (const DocModule &module : modules) {
    std::string page = getPageName(module.name), stem = StringRef(page).drop_back(3).str(), text;
    std::string whole = getModuleText(*module.file, module.name);
    llvm::SmallVector<StringRef, 16> lines;
    StringRef(whole).split(lines, '\n');
    index += "| [" + module.name + "](" + page + ") | " + makeCell(getFirstSentence(lines)) + " |\n";
    llvm::raw_string_ostream os(text);
    os << "# " << module.name << "\n\n"
       << whole << "\n\nSource: [" << stem << ".stg](../../stdlib/" << stem << ".stg)\n";
    for (const DocEntry &entry : all)
      if (entry.module == module.name)
        printEntry(os, entry, all);
    pages.push_back({page, os.str()});
  }
  pages.push_back({"flags.md", makeFlagPage(all)});
  pages.push_back({"README.md", index});
  return pages;
}

bool stage::driver::writePages(const DocCommand &command, llvm::ArrayRef<DocPage> pages, DiagnosticEngine &diags) {
  if (std::error_code error = llvm::sys::fs::create_directories(command.markdown)) {
    diags.report(SMLoc(), diag::CannotWriteFile) << command.markdown << error.message();
    return false;
  }
  return llvm::all_of(pages, [&](const DocPage &page) {
    llvm::SmallString<128> path(command.markdown);
    llvm::sys::path::append(path, page.name);
    return writeFile(path, page.text, Existing::Replace, diags);
  });
}
