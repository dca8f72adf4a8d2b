//===- CommGroups.cpp - the process groups of a set of traces -------------===//
#include "stage/Tasks/CommGroups.h"
#include "llvm/ADT/StringExtras.h"

using namespace stage;

void stage::writeCommGroups(const CommGroups &groups, llvm::raw_ostream &out) {
  out << '{';
  llvm::ListSeparator comma(",");
  for (const auto &[number, ranks] : groups) {
    out << comma << "\n  \"" << number << "\": [";
    llvm::ListSeparator space(", ");
    for (uint32_t rank : ranks)
      out << space << rank;
    out << ']';
  }
  out << (groups.empty() ? "}\n" : "\n}\n");
}
