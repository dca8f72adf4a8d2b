//===- SitePage.cpp - a page of Markdown as HTML --------------------------===//
//
// Problem: the pages of docs/ are Markdown as forges show it. A site needs more of each page than its HTML: the anchors
// that links may name, the text of each section for the search, and its links.
//
//   ## How far a time may be off          <h2 id="how-far-a-time-may-be-off"> ... </h2>
//   <a id="axis"></a>**axis**             the anchor of a term, and a section of the search
//   : One named direction of the mesh     the definition of the term, below it
//
// Algorithm: cmark-gfm parses the text. One walk over the tree finds headings, code, tables, pictures, links and the
// text of sections; then blocks that need other HTML than cmark's are replaced by blocks of our own. The anchor of a
// heading follows GitHub's rule, because pages link to anchors as GitHub makes them: the text in lower case without
// punctuation, blanks as hyphens, and `-1`, `-2` behind a text that the page has already.
//
// Limits: an anchor keeps all characters beyond ASCII, where GitHub removes punctuation among them.
//
//===----------------------------------------------------------------------===//
#include "SitePage.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm.h>

using namespace stage;
using namespace stage::driver;
using llvm::StringRef;

static StringRef getLiteral(cmark_node *node) {
  const char *text = cmark_node_get_literal(node);
  return text ? text : "";
}

/// The words of a node, without markup.
static std::string getText(cmark_node *node) {
  cmark_node_type type = cmark_node_get_type(node);
  if (type == CMARK_NODE_TEXT || type == CMARK_NODE_CODE)
    return getLiteral(node).str();
  std::string text = type == CMARK_NODE_SOFTBREAK || type == CMARK_NODE_LINEBREAK ? " " : "";
  for (cmark_node *child = cmark_node_first_child(node); child; child = cmark_node_next(child))
    text += getText(child);
  return text;
}

/// `axis` of `<a id="axis">`; empty for other nodes.
static StringRef getId(cmark_node *node) {
  StringRef html = node && cmark_node_get_type(node) == CMARK_NODE_HTML_INLINE ? getLiteral(node) : "";
  return html.startswith("<a ") ? html.split(" id=\"").second.split('"').first : "";
}

/// GitHub's rule, but for numbers behind equal ones.
static std::string makeAnchor(StringRef title) {
  std::string anchor;
  for (char c : title)
    if (llvm::isAlnum(c) || c == '-' || c == '_' || c == ' ' || static_cast<unsigned char>(c) >= 0x80)
      anchor += c == ' ' ? '-' : llvm::toLower(c);
  return anchor;
}

/// A block of which the HTML before and behind its children is given.
static cmark_node *makeBlock(const std::string &before, const std::string &behind) {
  cmark_node *block = cmark_node_new(CMARK_NODE_CUSTOM_BLOCK);
  cmark_node_set_on_enter(block, before.c_str());
  cmark_node_set_on_exit(block, behind.c_str());
  return block;
}

static void wrap(cmark_node *node, cmark_node *parent) {
  cmark_node_replace(node, parent);
  cmark_node_append_child(parent, node);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

SitePage::SitePage(StringRef text) {
  cmark_gfm_core_extensions_ensure_registered();
  cmark_parser *parser = cmark_parser_new(CMARK_OPT_VALIDATE_UTF8);
  for (const char *name : {"table", "autolink"})
    cmark_parser_attach_syntax_extension(parser, cmark_find_syntax_extension(name));
  cmark_parser_feed(parser, text.data(), text.size());
  document = cmark_parser_finish(parser);
  cmark_parser_free(parser);
  sections.push_back({0, "", "", ""});
  cmark_iter *iter = cmark_iter_new(document);
  for (cmark_event_type event; (event = cmark_iter_next(iter)) != CMARK_EVENT_DONE;) {
    cmark_node *node = cmark_iter_get_node(iter);
    if (event == CMARK_EVENT_ENTER)
      read(node);
    else if (StringRef kind = cmark_node_get_type_string(node); kind == "paragraph" || kind == "table_cell")
      sections.back().text += ' ';
  }
  cmark_iter_free(iter);
  replaceBlocks();
}

SitePage::~SitePage() { cmark_node_free(document); }

std::string SitePage::addAnchor(const std::string &anchor) {
  std::string name = anchor;
  for (unsigned number = 1; !anchors.insert(name).second; ++number)
    name = anchor + "-" + std::to_string(number);
  return name;
}

void SitePage::read(cmark_node *node) {
  cmark_node_type type = cmark_node_get_type(node);
  cmark_node *parent = cmark_node_parent(node);
  bool isInHeading = parent && cmark_node_get_type(parent) == CMARK_NODE_HEADING;
  if (type == CMARK_NODE_HEADING) {
    std::string title = getText(node);
    sections.push_back({unsigned(cmark_node_get_heading_level(node)), addAnchor(makeAnchor(title)), title, ""});
    headings.push_back({node, sections.size() - 1});
  } else if (type == CMARK_NODE_HTML_INLINE && !getId(node).empty()) {
    std::string anchor = addAnchor(getId(node).str());
    // A term begins its paragraph: `<a id="axis"></a>**axis**`.
    cmark_node *end = cmark_node_next(node), *term = end ? cmark_node_next(end) : nullptr;
    if (!cmark_node_previous(node) && term && cmark_node_get_type(term) == CMARK_NODE_STRONG)
      sections.push_back({0, anchor, getText(term), ""});
  } else if (type == CMARK_NODE_LINK || type == CMARK_NODE_IMAGE) {
    links.push_back({node, cmark_node_get_url(node), sections.size() - 1});
  } else if (type == CMARK_NODE_CODE_BLOCK) {
    codeBlocks.push_back(node);
    sections.back().text += getLiteral(node).str() + ' ';
  } else if (StringRef(cmark_node_get_type_string(node)) == "table") {
    tables.push_back(node);
  } else if (!isInHeading && (type == CMARK_NODE_TEXT || type == CMARK_NODE_CODE)) {
    cmark_node *before = cmark_node_previous(node);
    StringRef literal = getLiteral(node);
    if (before && cmark_node_get_type(before) == CMARK_NODE_SOFTBREAK && literal.consume_front(": "))
      definitions.push_back(node);
    sections.back().text += literal;
  } else if (!isInHeading && (type == CMARK_NODE_SOFTBREAK || type == CMARK_NODE_LINEBREAK)) {
    sections.back().text += ' ';
  }
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

void SitePage::replaceBlocks() {
  for (auto [node, section] : headings) {
    std::string tag = "h" + std::to_string(sections[section].level), anchor = escapeHtml(sections[section].anchor);
    std::string link =
        llvm::formatv("<a class=\"anchor\" href=\"#{0}\" aria-label=\"Link to this section\">#</a>", anchor);
    cmark_node *block =
        makeBlock(llvm::formatv("<{0} id=\"{1}\">", tag, anchor), llvm::formatv("{0}</{1}>", link, tag));
    cmark_node_insert_before(node, block);
    while (cmark_node *child = cmark_node_first_child(node))
      cmark_node_append_child(block, child);
    cmark_node_free(node);
  }
  for (cmark_node *node : codeBlocks) {
    const char *info = cmark_node_get_fence_info(node);
    cmark_node_replace(node, makeBlock(makeCodeBlock(getLiteral(node), info ? info : ""), ""));
    cmark_node_free(node);
  }
  for (cmark_node *node : tables) // one that is too wide for a screen scrolls
    wrap(node, makeBlock("<div class=\"table\">", "</div>"));
  for (cmark_node *node : definitions) {
    cmark_node_set_literal(node, getLiteral(node).drop_front(2).str().c_str());
    cmark_node *line = cmark_node_previous(node);
    cmark_node_replace(line, cmark_node_new(CMARK_NODE_LINEBREAK));
    cmark_node_free(line);
  }
}

void SitePage::setTarget(const SiteLink &link, const std::string &target) {
  cmark_node_set_url(link.node, target.c_str());
  cmark_node *parent = cmark_node_parent(link.node);
  if (cmark_node_get_type(link.node) != CMARK_NODE_IMAGE || cmark_node_get_type(parent) == CMARK_NODE_LINK)
    return;
  cmark_node *whole = cmark_node_new(CMARK_NODE_LINK); // a picture that a screen shrinks can be opened
  cmark_node_set_url(whole, target.c_str());
  wrap(link.node, whole);
}

std::string SitePage::print() const {
  char *html = cmark_render_html(document, CMARK_OPT_UNSAFE, nullptr); // unsafe: with anchors, which are HTML
  std::string text = html;
  cmark_get_default_mem_allocator()->free(html);
  return text;
}
