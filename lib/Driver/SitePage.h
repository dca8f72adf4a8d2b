//===- SitePage.h - a page of Markdown as HTML -----------------*- C++ -*-===//
#ifndef STAGE_LIB_DRIVER_SITEPAGE_H
#define STAGE_LIB_DRIVER_SITEPAGE_H

#include "llvm/ADT/StringRef.h"
#include <set>
#include <string>
#include <vector>

struct cmark_node;

namespace stage::driver {

/// A heading, or a term that a paragraph defines, with the text up to the next one.
struct SiteSection {
  unsigned level; ///< Of the heading, from 1; 0 for a term, and for text before the first heading.
  std::string anchor, title, text;
};

/// A link or a picture, as it is written.
struct SiteLink {
  cmark_node *node;
  std::string target;
  size_t section; ///< In which it stands.
};

/// `&lt;` for `<`, and so on.
std::string escapeHtml(llvm::StringRef text);
/// Code as `<pre>`. `info` stands behind the fence: `stg file=job.stg` is a program, whose words are coloured,
/// `console` a session of commands and their output. Without a language a program is recognised by its tokens.
std::string makeCodeBlock(llvm::StringRef code, llvm::StringRef info);

class SitePage {
public:
  explicit SitePage(llvm::StringRef text);
  ~SitePage();
  SitePage(const SitePage &) = delete;
  SitePage &operator=(const SitePage &) = delete;

  /// The first one is the text before the first heading.
  const std::vector<SiteSection> &getSections() const { return sections; }
  const std::vector<SiteLink> &getLinks() const { return links; }
  const std::set<std::string> &getAnchors() const { return anchors; }
  /// The first heading; empty if there is none.
  llvm::StringRef getTitle() const { return sections.size() > 1 ? llvm::StringRef(sections[1].title) : ""; }

  void setTarget(const SiteLink &link, const std::string &target);
  std::string print() const;

private:
  void read(cmark_node *node);
  /// Adds an anchor, with a number behind it if the page has it already.
  std::string addAnchor(const std::string &anchor);
  void replaceBlocks();

  cmark_node *document;
  std::vector<SiteSection> sections;
  std::vector<SiteLink> links;
  std::set<std::string> anchors;
  std::vector<std::pair<cmark_node *, size_t>> headings; ///< And their sections.
  std::vector<cmark_node *> codeBlocks, tables, definitions;
};

} // namespace stage::driver

#endif // STAGE_LIB_DRIVER_SITEPAGE_H
