//===- Import.h - programs from published configurations -------*- C++ -*-===//
//
// Problem: models are published as a configuration, a JSON object whose fields every
// family calls its own way, with some fields left out and many that change nothing.
//
//   { "model_type": "llama",           import std.transformer (Llama);
//     "num_hidden_layers": 32,         import std.parallel (megatron);
//     "hidden_size": 4096,             config published for Llama {
//     ...                                L = 32;  // num_hidden_layers
//     "use_cache": true }                ...
//                                      }
//                                      job pretrain { model = Llama(published); ... }
//
// What a field means to a model of the library is data: huggingface.json of the standard library has, per model_type,
// variants. Algorithm: the first variant whose conditions hold is taken. Each parameter of the model is a text with
// fields in braces; of several the first whose fields are all there. Every other field must be one that the table
// expects, with a value that the model has, or one that changes no size; else it is an error that names it.
//
// Limits: what the fields say together (heads that do not share keys evenly) the compiler finds in the result.
//
//===----------------------------------------------------------------------===//
#ifndef STAGE_IMPORT_IMPORT_H
#define STAGE_IMPORT_IMPORT_H

#include "stage/Support/Diagnostics.h"
#include <optional>
#include <string>
#include <vector>

namespace stage::importer {

struct ImportOptions {
  std::string table;                ///< The path of huggingface.json, for messages.
  std::vector<std::string> ignored; ///< Fields to go on without.
};

struct ImportedProgram {
  std::string model;              ///< The model of the library.
  std::string modelType;          ///< As the configuration says.
  std::string dtype;              ///< Likewise, of the weights; empty: it does not.
  bool isPart = false;            ///< It is what the configuration of a larger model says of text.
  std::vector<std::string> notes; ///< What of the configuration the model does not have.
  std::string text;               ///< Imports, config and job.
  SMLoc place;                    ///< Of the configuration's model_type.
  std::string parameters;         ///< The numbers of the model and their fields: `D = 4_096 (hidden_size), ...`.
};

/// The program of the configuration in a buffer of the engine's sources, with the table in another one. Nothing after a
/// report.
std::optional<ImportedProgram> importConfiguration(unsigned configuration, unsigned table, const ImportOptions &options,
                                                   DiagnosticEngine &diags);

} // namespace stage::importer

#endif // STAGE_IMPORT_IMPORT_H
