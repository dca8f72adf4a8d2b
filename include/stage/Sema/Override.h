//===- Override.h - a value in place of one of the program -----*- C++ -*-===//
//
// A plan replaces values of a job, its config, its step or its strategy: an integer, a boolean, a text, or whatever
// else the language has, written as an expression.
//
//   {"tp", 4}  {"zero", 3}  {"strategy.sp", true}  {"L", OverrideValue::expression("4 * 8")}
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_SEMA_OVERRIDE_H
#define STAGE_SEMA_OVERRIDE_H

#include "llvm/ADT/StringRef.h"
#include <concepts>
#include <cstdint>
#include <string>
#include <variant>

namespace stage::sema {

class OverrideValue {
public:
  template <std::integral T> OverrideValue(T number) {
    if constexpr (std::same_as<T, bool>)
      value = number;
    else
      value = int64_t(number);
  }
  /// A text in quotes, which it must not have itself.
  static OverrideValue string(llvm::StringRef text) { return OverrideValue(Text{text.str()}); }
  /// An expression or a range of the language: `4Ki`, `[3, 4]`, `adamw`. Faults in it are found when a job is bound.
  static OverrideValue expression(llvm::StringRef text) { return OverrideValue(Expression{text.str()}); }
  /// What `-D name=text` gives: an integer, a boolean, or an expression.
  static OverrideValue read(llvm::StringRef text);

  const int64_t *getInteger() const { return std::get_if<int64_t>(&value); }
  const bool *getBoolean() const { return std::get_if<bool>(&value); }
  const std::string *getString() const {
    const Text *text = std::get_if<Text>(&value);
    return text ? &text->text : nullptr;
  }
  /// `1..8`, which is no value of a number.
  bool isRange() const;
  /// As the language writes it.
  std::string getSpelling() const;

private:
  struct Text {
    std::string text;
  };
  struct Expression {
    std::string text;
  };
  template <typename T>
  requires(!std::integral<T>) explicit OverrideValue(T value) : value(std::move(value)) {}

  std::variant<int64_t, bool, Text, Expression> value;
};

/// `-D name=value` of the command line. `strategy.tp` names the one of several values that are called so.
struct Override {
  std::string name;
  OverrideValue value;
};

} // namespace stage::sema

#endif // STAGE_SEMA_OVERRIDE_H
