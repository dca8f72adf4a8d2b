//===- ExpectedTokens.h - what could have stood where a parse failed -*- C++ -*-===//
//
// When no alternative of a decision fits the tokens ahead, ANTLR knows the token on
// which the last alternative died, but not what the alternatives wanted there:
//
//   let q = (a b);        died on `b`; `,`, `)` or an operator would have done
//
// So the tokens from the decision on are run through the grammar's automaton again,
// all alternatives at once. Predicates are taken for true, which can only add tokens.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_LIB_PARSE_EXPECTEDTOKENS_H
#define STAGE_LIB_PARSE_EXPECTEDTOKENS_H

#include "antlr4-runtime.h"
#include <set>

namespace stage::parse {

/// The tokens that could stand at `last` if the parser, where it is, reads the tokens from `first` to before `last`.
std::set<size_t> expectedAt(antlr4::Parser &parser, const antlr4::Token *first, const antlr4::Token *last);

} // namespace stage::parse

#endif // STAGE_LIB_PARSE_EXPECTEDTOKENS_H
