//===- LoadFile.cpp - how busy experts are, from a file -------------------===//
//
// Problem: a histogram is measured, and many layers have one each: too long for a command line.
//
//   file.json of --load                                is
//   {"layers": [[310, 12, 55, 8], [41, 40, 39, 38]]}   -D config.loads=[[310,12,55,8],[41,40,39,38]]
//   [310, 12, 55, 8]                                   -D config.loads=[[310,12,55,8]]
//
// Algorithm: the file is read as JSON, held to what a load is, and becomes the value of the model's parameter `loads`,
// as `-D` would give it: what is wrong with it there, as a length that is not that of the experts, is said by whoever
// uses it.
//
//===----------------------------------------------------------------------===//
#include "Options.h"
#include "stage/Driver/Diagnostics.h"
#include "stage/Support/Files.h"
#include "stage/Support/Json.h"
#include "llvm/Support/Format.h"

using namespace stage;
using namespace stage::driver;

namespace {
class LoadReader {
public:
  LoadReader(llvm::StringRef path, DiagnosticEngine &diags) : path(path), diags(diags) {}

  std::optional<std::string> read() {
    std::unique_ptr<llvm::MemoryBuffer> file = readFile(path.str(), diags);
    if (!file)
      return std::nullopt;
    std::string error;
    std::optional<llvm::json::Value> value = parseJson(file->getBuffer(), error);
    if (!value)
      return fail(error);
    llvm::json::Array *layers = value->getAsArray();
    std::string where;
    if (llvm::json::Object *object = value->getAsObject()) {
      for (auto &[key, field] : *object)
        if (key != "layers")
          return fail("field '" + key.str() + "' is none of a load; there is 'layers', a list of lists");
      layers = object->getArray("layers");
      where = "layers";
    }
    if (!layers)
      return fail("a list of numbers is expected, or of such lists, or an object with a list 'layers'");
    if (layers->empty())
      return fail("the list" + (where.empty() ? "" : " '" + where + "'") + " is empty");
    // One list is that of all layers.
    if (where.empty() && !layers->front().getAsArray())
      return readList(*layers, "") ? std::optional(std::string("[") + text + "]") : std::nullopt;
    std::string all;
    for (size_t i = 0; i < layers->size(); ++i) {
      std::string place = where + "[" + std::to_string(i) + "]";
      const llvm::json::Array *list = (*layers)[i].getAsArray();
      if (!list)
        return fail(place + " is no list");
      if (!readList(*list, place))
        return std::nullopt;
      all += (i ? "," : "[") + text;
    }
    return all + "]";
  }

private:
  std::nullopt_t fail(const llvm::Twine &why) {
    diags.report(SMLoc(), diag::BadLoadFile) << path << why;
    return std::nullopt;
  }

  /// As a list of the language, in `text`.
  bool readList(const llvm::json::Array &list, const std::string &place) {
    text.clear();
    llvm::raw_string_ostream os(text);
    os << '[';
    for (size_t i = 0; i < list.size(); ++i) {
      std::string entry = place + "[" + std::to_string(i) + "]";
      auto number = list[i].getAsNumber();
      if (!number)
        return fail(entry + " is no number"), false;
      if (!(*number >= 0) || *number > largest)
        return fail(entry + (*number < 0 ? " is below 0" : " is larger than 2^62")), false;
      os << (i ? "," : "");
      if (auto integer = list[i].getAsInteger())
        os << *integer;
      else
        os << llvm::format("%.17e", *number);
    }
    os << ']';
    return true;
  }

  static constexpr double largest = 0x1p62;

  llvm::StringRef path;
  DiagnosticEngine &diags;
  std::string text;
};
} // namespace

std::optional<std::string> stage::driver::readLoadFile(llvm::StringRef path, DiagnosticEngine &diags) {
  return LoadReader(path, diags).read();
}
