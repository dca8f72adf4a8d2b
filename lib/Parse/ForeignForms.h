//===- ForeignForms.h - words and forms of other languages -----*- C++ -*-===//
//
// Problem: who knows another language writes its words here, and "found 'and', expected ','" does not say what to
// write.
//
//   require D % H == 0 and H % KV == 0;      // write 'D % H == 0 && H % KV == 0'
//   for i in range(w): forward(i);           // write 'for i in 0..w { forward(i); }'
//
// Algorithm: a list of forms, each a look at the tokens around the place where the parser stopped. The first that fits
// says what to write, made of the program's own words.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_PARSE_FOREIGNFORMS_H
#define STAGE_LIB_PARSE_FOREIGNFORMS_H

#include "Source.h"
#include "llvm/ADT/StringRef.h"
#include <antlr4-runtime.h>
#include <string>

namespace stage::parse {

/// What to write in place of a form of another language.
struct Instead {
  std::string text;            ///< Empty: no form that is known.
  antlr4::Token *at = nullptr; ///< The word that is foreign, if it is not the token at which the parser stopped.
  std::string expected;        ///< What stands at `at` instead.
};

/// What is meant at `token`, where the parser stopped and would have taken `expected`.
Instead findInstead(const SourceText &source, antlr4::TokenStream &stream, antlr4::Token *token,
                    llvm::StringRef expected);

} // namespace stage::parse

#endif // STAGE_LIB_PARSE_FOREIGNFORMS_H
