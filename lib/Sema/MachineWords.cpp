//===- MachineWords.cpp - the entries of machines -------------------------===//
#include "MachineWords.h"
#include "stage/Sema/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;
using namespace stage::sema;

std::vector<std::string> stage::sema::listMachineEntryNames() {
  std::vector<std::string> names;
  for (StringRef prefix :
       {flopsPrefix, contractionPrefix, attentionPrefix, sustainedPrefix, smallPrefix, smallFloorPrefix, expertsPrefix})
    for (StringRef type : machineTypes)
      if (prefix != attentionPrefix || type != "tf32")
        names.push_back((prefix + type).str());
  for (StringRef prefix : {contractionPrefix, sustainedPrefix})
    names.push_back((prefix + blockType).str());
  for (const auto &entry : machineEntries)
    names.push_back(entry.name.str());
  return names;
}

std::vector<std::string> stage::sema::listLevelEntryNames() {
  std::vector<std::string> names{kindEntry.str(), inSwitchEntry.str()};
  for (const auto &entry : levelEntries)
    names.push_back(entry.name.str());
  for (StringRef collective : collectiveNames)
    names.push_back((collectivePrefix + collective).str());
  return names;
}

const ast::StringExpr *stage::sema::findTableName(const ast::Expr *value) {
  auto *call = llvm::dyn_cast<ast::CallExpr>(value);
  auto *callee = call ? llvm::dyn_cast<ast::NameExpr>(call->callee) : nullptr;
  if (!callee || callee->name != "table" || call->hasIndices || call->as || call->args.size() != 1 ||
      call->args[0].name)
    return nullptr;
  return llvm::dyn_cast<ast::StringExpr>(call->args[0].value);
}

bool stage::sema::checkTableCall(const ast::Expr *value, StringRef name, DiagnosticEngine &diags) {
  auto *call = llvm::dyn_cast<ast::CallExpr>(value);
  auto *callee = call ? llvm::dyn_cast<ast::NameExpr>(call->callee) : nullptr;
  if (!callee || callee->name != "table" || findTableName(value))
    return true;
  diags.report(value->loc(), diag::MachineValueRange).range(value->range)
      << "'" + name + "'"
      << "table(\"file.csv\")" << ast::textOf(value);
  return false;
}

bool stage::sema::isWordEntry(StringRef levelEntry) { return levelEntry == kindEntry || levelEntry == inSwitchEntry; }

std::optional<std::vector<std::string>> stage::sema::readWords(const ast::Expr *value, StringRef levelEntry,
                                                               StringRef name, DiagnosticEngine &diags) {
  bool isList = levelEntry == inSwitchEntry;
  ArrayRef<llvm::StringLiteral> known = levelKinds;
  if (isList)
    known = inSwitchNames;
  llvm::SmallVector<const ast::Expr *, 4> elements;
  if (auto *list = isList ? llvm::dyn_cast<ast::ListExpr>(value) : nullptr)
    elements.append(list->elements.begin(), list->elements.end());
  else if (!isList)
    elements.push_back(value);
  std::vector<std::string> words;
  for (const ast::Expr *element : elements) {
    auto *word = llvm::dyn_cast<ast::NameExpr>(element);
    if (!word || !llvm::is_contained(known, word->name) || llvm::is_contained(words, word->name)) {
      words.clear();
      break;
    }
    words.push_back(word->name.str());
  }
  if (!words.empty())
    return words;
  std::string choice = llvm::join(known, ", ");
  diags.report(value->loc(), diag::MachineValueRange).range(value->range)
      << "'" + name + "'"
      << (isList ? "a list of words out of " + choice + ", each once, such as [all_reduce]" : "one of " + choice)
      << ast::textOf(value);
  return std::nullopt;
}

TableForm stage::sema::getTableForm(StringRef prefix) {
  static constexpr llvm::StringLiteral contraction[] = {"m", "n", "k", "ratio"};
  static constexpr llvm::StringLiteral attention[] = {"head_size", "sequence", "heads", "ratio"};
  static constexpr llvm::StringLiteral collective[] = {"ranks", "bytes", "us"};
  if (prefix == contractionPrefix)
    return {contraction};
  if (prefix == attentionPrefix)
    return {attention};
  return {collective, /*leastFirst=*/2};
}
