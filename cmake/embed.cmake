# cmake -DOUT=file.cpp -DNAMESPACE=a::b -DFILES="x.html;y.css" -P embed.cmake
# Text files as C++: std::string_view kEmbedded_x_html, ... in the namespace, as raw string literals.
set(code "#include <string_view>\nnamespace ${NAMESPACE} {\n")
foreach(path IN LISTS FILES)
  get_filename_component(name ${path} NAME)
  string(REPLACE "." "_" name ${name})
  file(READ ${path} text)
  string(APPEND code "extern const std::string_view kEmbedded_${name};\n"
                     "const std::string_view kEmbedded_${name} = R\"embedded(${text})embedded\";\n")
endforeach()
file(WRITE ${OUT} "${code}}  // namespace ${NAMESPACE}\n")
