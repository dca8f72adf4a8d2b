//===- ArgumentFile.h - arguments of a framework, from a file --*- C++ -*-===//
//
// Frameworks are told the same in five forms, and a launcher (stage/Sema/Launchers.h) reads words:
//
//   torchrun train.py --tp 8 \            a command line; words in front of the first flag are the command
//     --sequence-parallel # beside tp
//   tp: 8                                 lines of keys and values, deeper ones behind those of their sections
//   [parallelism]                         sections in brackets
//   tensor_parallel_degree = 8
//   {"zero_optimization": {"stage": 2}}       JSON, whose deeper keys stand behind those around them
//
// A key is that of a flag as it is, behind `--`, or behind `--` with `-` for `_`. `true` of a flag that is a word alone
// gives the flag, `false` leaves it out.
//
// Limits: no lists, no texts of several lines, no variables of the shell.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_DRIVER_ARGUMENTFILE_H
#define STAGE_LIB_DRIVER_ARGUMENTFILE_H

#include "stage/Sema/Launchers.h"

namespace stage::driver {

struct ArgumentWords {
  std::vector<std::string> words;
  std::vector<llvm::SMLoc> places;
  std::string fault; ///< Of a text that is no JSON, though it begins as one; empty: there is none.
  const char *faultPlace = nullptr;
};
ArgumentWords readArguments(llvm::StringRef text, const sema::Launcher &launcher);

} // namespace stage::driver

#endif // STAGE_LIB_DRIVER_ARGUMENTFILE_H
