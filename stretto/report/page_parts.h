#pragma once

namespace stretto::report {

// The style sheet and the script of report pages.
extern const char* const page_style;
extern const char* const page_script;

}  // namespace stretto::report
