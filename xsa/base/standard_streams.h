// Standard input, output and error as they were at the start.
#pragma once

namespace xsa {

/// Before any file is opened: a standard stream that was closed (`<&-`) stays one that cannot be
/// read or written, so that no file takes its place and no output goes into one.
void hold_standard_streams();

}  // namespace xsa
