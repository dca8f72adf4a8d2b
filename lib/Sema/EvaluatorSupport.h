//===- EvaluatorSupport.h - what the evaluator's files share ---*- C++ -*-===//
#ifndef STAGE_LIB_SEMA_EVALUATORSUPPORT_H
#define STAGE_LIB_SEMA_EVALUATORSUPPORT_H

#include "stage/AST/AST.h"
#include <string>

namespace stage::sema {

using ast::textOf;
/// A size rounded up to an integer; its sign, as that of a margin, stays.
Size roundUp(Size size);

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_EVALUATORSUPPORT_H
