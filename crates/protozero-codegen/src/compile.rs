//! From `.proto` files or descriptors to generated code.

use std::collections::BTreeMap;
use std::path::Path;

use prost::Message as _;
use prost_reflect::DescriptorPool;

use crate::config::Config;
use crate::error::Error;
use crate::names::{MODULE_FILE, output_path};
use crate::output::Output;
use crate::schema::Schema;
use crate::{check, file, module_tree, options_proto};

impl Config {
    /// Compiles `.proto` files. Their paths are relative to one of the folders `includes`.
    ///
    /// # Errors
    ///
    /// If the files do not compile, if they use a feature that is not supported, or if a pattern of
    /// this configuration selects nothing.
    pub fn compile(&self, files: &[impl AsRef<Path>], includes: &[impl AsRef<Path>]) -> Result<Output, Error> {
        let mut compiler = protox::Compiler::with_file_resolver(options_proto::resolver(includes));
        compiler.include_imports(true).include_source_info(true);
        for path in files.iter().map(AsRef::as_ref) {
            compiler.open_file(path).map_err(|error| match error.file() {
                None if error.is_file_not_found() => {
                    let includes = includes.iter().map(|folder| folder.as_ref().to_owned()).collect();
                    Error::NotFound { path: path.to_owned(), includes }
                }
                _ => Error::Proto(error),
            })?;
        }
        let wanted: Vec<String> = compiler.files().filter(|f| !f.is_import()).map(|f| f.name().to_owned()).collect();
        let sources = compiler.files().filter_map(|file| file.path().map(Path::to_owned)).collect();
        // A new pool, because the compiler built its own before it knew the options of fields.
        let pool = DescriptorPool::decode(compiler.encode_file_descriptor_set().as_slice())?;
        let output = self.generate(&pool, &wanted)?;
        Ok(Output { sources, ..output })
    }

    /// Generates code for the files named `wanted` out of a pool of descriptors.
    pub(crate) fn generate(&self, pool: &DescriptorPool, wanted: &[String]) -> Result<Output, Error> {
        check::maps(pool)?;
        let schema = Schema::new(self, pool, wanted)?;
        let texts = schema.files().iter().map(|file| file::print(&schema, file)).collect::<Result<Vec<_>, _>>()?;
        let paths: Vec<String> = schema.files().iter().map(|file| output_path(file, self)).collect();
        let bundle = module_tree::bundle(&schema, &texts);
        let module_file = module_tree::module_file(&schema, &paths);
        let mut files = BTreeMap::new();
        for (file, (path, text)) in schema.files().iter().zip(paths.into_iter().zip(texts)) {
            if files.insert(path.clone(), text).is_some() {
                return Err(Error::SamePath { path, proto: file.name().to_owned() });
            }
        }
        files.insert(MODULE_FILE.to_owned(), module_file);
        Ok(Output { files, bundle, descriptor_set: descriptor_set(pool), sources: Vec::new() })
    }
}

/// Returns the serialized descriptors without comments.
fn descriptor_set(pool: &DescriptorPool) -> Vec<u8> {
    let mut file: Vec<_> = pool.file_descriptor_protos().cloned().collect();
    file.iter_mut().for_each(|file| file.source_code_info = None);
    prost_types::FileDescriptorSet { file }.encode_to_vec()
}
