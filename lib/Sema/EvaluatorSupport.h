//===- EvaluatorSupport.h - what the evaluator's files share ---*- C++ -*-===//
#ifndef STAGE_LIB_SEMA_EVALUATORSUPPORT_H
#define STAGE_LIB_SEMA_EVALUATORSUPPORT_H

#include "stage/AST/AST.h"
#include <string>

namespace stage::sema {

using ast::textOf;
/// Beyond the 63 bits of a size.
bool isTooLarge(const Rational &value);
/// The nearest double.
double toDouble(const Rational &value);

} // namespace stage::sema

#endif // STAGE_LIB_SEMA_EVALUATORSUPPORT_H
