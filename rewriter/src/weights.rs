//! A checkpoint's tensors, read one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use burn_tensor::{DType, Element, FloatDType, Tensor, TensorData, bf16, f16};
use safetensors::Dtype;
use safetensors::tensor::Metadata;
use serde::Deserialize;

use crate::backend::PolicyBackend;
use crate::config::read_json;
use crate::error::FileError;

pub(crate) const SINGLE: &str = "model.safetensors";
pub(crate) const INDEX: &str = "model.safetensors.index.json";
/// Bytes read at a time; with the tensor being filled, all that loading holds beyond the model.
const CHUNK: usize = 1 << 20;
/// Longest header that safetensors allows, in bytes.
const LONGEST_HEADER: u64 = 100_000_000;

/// The open safetensors files of a model or an adapter.
#[derive(Debug)]
pub struct Weights {
    folder: PathBuf,
    files: Vec<WeightFile>,
    places: BTreeMap<String, Place>,
    /// What the files' headers say beside their tensors.
    notes: BTreeMap<String, String>,
    /// Tensors asked for so far.
    used: BTreeSet<String>,
}

#[derive(Debug)]
struct WeightFile {
    path: PathBuf,
    file: File,
}

#[derive(Debug, Clone)]
struct Place {
    file: usize,
    number_type: Dtype,
    shape: Vec<usize>,
    /// First byte, from the beginning of the file.
    start: u64,
}

#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

/// The file names of the shards that an index names.
///
/// # Errors
///
/// The index does not read, or names a file outside its folder.
pub(crate) fn shards(index: &Path) -> Result<BTreeSet<String>, FileError> {
    let content: Index =
        serde_json::from_value(read_json(index)?).map_err(|why| FileError::content(index, why))?;
    let shards: BTreeSet<_> = content.weight_map.into_values().collect();
    match shards
        .iter()
        .find(|shard| Path::new(shard).file_name() != Some(OsStr::new(shard)))
    {
        Some(shard) => Err(FileError::content(
            index,
            format!("the shard `{shard}` must be a file beside the index"),
        )),
        None => Ok(shards),
    }
}

impl Weights {
    /// Opens `model.safetensors`, or the shards that `model.safetensors.index.json` names.
    ///
    /// # Errors
    ///
    /// Neither is there, a shard is missing, or a file is truncated or not safetensors.
    pub fn open(folder: &Path) -> Result<Self, FileError> {
        let index_path = folder.join(INDEX);
        if !index_path.exists() {
            return Self::open_file(&folder.join(SINGLE));
        }
        let mut weights = Self::empty(folder);
        for shard in shards(&index_path)? {
            let path = folder.join(&shard);
            if !path.exists() {
                return Err(FileError::MissingShard {
                    folder: folder.to_owned(),
                    shard,
                });
            }
            weights.add(path)?;
        }
        Ok(weights)
    }

    /// Opens one safetensors file.
    ///
    /// # Errors
    ///
    /// It is missing, truncated or not safetensors.
    pub(crate) fn open_file(path: &Path) -> Result<Self, FileError> {
        let mut weights = Self::empty(path.parent().unwrap_or(path));
        weights.add(path.to_owned())?;
        Ok(weights)
    }

    fn empty(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            files: Vec::new(),
            places: BTreeMap::new(),
            notes: BTreeMap::new(),
            used: BTreeSet::new(),
        }
    }

    fn add(&mut self, path: PathBuf) -> Result<(), FileError> {
        let mut file = File::open(&path).map_err(FileError::io(&path))?;
        let found = file.metadata().map_err(FileError::io(&path))?.len();
        let truncated = |expected| FileError::Truncated {
            path: path.clone(),
            expected,
            found,
        };
        let mut length = [0; 8];
        if found < 8 {
            return Err(truncated(8));
        }
        file.read_exact(&mut length).map_err(FileError::io(&path))?;
        let length = u64::from_le_bytes(length);
        if length > LONGEST_HEADER {
            return Err(FileError::content(&path, "this is not a safetensors file"));
        }
        if found < 8 + length {
            return Err(truncated(8 + length));
        }
        let mut header = vec![0; length as usize];
        file.read_exact(&mut header).map_err(FileError::io(&path))?;
        let header: Metadata = serde_json::from_slice(&header).map_err(|why| {
            FileError::content(&path, format!("the safetensors header does not read: {why}"))
        })?;
        let notes = header.metadata().iter().flatten();
        self.notes
            .extend(notes.map(|(name, note)| (name.clone(), note.clone())));
        let start = 8 + length;
        for (name, info) in header.tensors() {
            let (from, to) = info.data_offsets;
            let bits = info
                .shape
                .iter()
                .try_fold(info.dtype.bitsize(), |bits, length| bits.checked_mul(*length));
            let stored = to.checked_sub(from).and_then(|bytes| bytes.checked_mul(8));
            if bits.is_none() || stored != bits {
                return Err(FileError::content(
                    &path,
                    format!("tensor `{name}` has other offsets than its shape needs: the file is damaged"),
                ));
            }
            let end = start.saturating_add(to as u64);
            if found < end {
                return Err(truncated(end));
            }
            let place = Place {
                file: self.files.len(),
                number_type: info.dtype,
                shape: info.shape.clone(),
                start: start + from as u64,
            };
            self.places.insert(name, place);
        }
        self.files.push(WeightFile { path, file });
        Ok(())
    }

    /// Whether there is a tensor of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.places.contains_key(name)
    }

    /// What a file's header says under this name beside its tensors.
    pub(crate) fn note(&self, name: &str) -> Option<&str> {
        self.notes.get(name).map(String::as_str)
    }

    /// Reads a tensor in the type `number_type`.
    ///
    /// # Errors
    ///
    /// It is missing, has another shape, or is stored in a type other than F32, BF16 and F16.
    pub fn read<B: PolicyBackend, const D: usize>(
        &mut self,
        name: &str,
        shape: [usize; D],
        number_type: FloatDType,
        device: &B::Device,
    ) -> Result<Tensor<B, D>, FileError> {
        let place = self.places.get(name).ok_or_else(|| FileError::MissingTensor {
            folder: self.folder.clone(),
            name: name.to_owned(),
        })?;
        self.used.insert(name.to_owned());
        let WeightFile { path, file } = &mut self.files[place.file];
        if place.shape != shape {
            return Err(FileError::Shape {
                path: path.clone(),
                name: name.to_owned(),
                expected: shape.to_vec(),
                found: place.shape.clone(),
            });
        }
        let decode = Decode::of(place.number_type).ok_or_else(|| FileError::NumberType {
            path: path.clone(),
            name: name.to_owned(),
            found: format!("{:?}", place.number_type),
        })?;
        file.seek(SeekFrom::Start(place.start))
            .map_err(FileError::io(path))?;
        let data = match number_type {
            FloatDType::F64 => decode.data(file, shape, f64::from),
            FloatDType::F16 => decode.data(file, shape, f16::from_f32),
            FloatDType::BF16 => decode.data(file, shape, bf16::from_f32),
            FloatDType::F32 | FloatDType::Flex32 => decode.data(file, shape, |number| number),
        }
        .map_err(FileError::io(path))?;
        let bytes = data.bytes.len();
        Ok(B::lasting(device, bytes, data, |data| {
            Tensor::from_data(data, (device, DType::from(number_type)))
        }))
    }

    /// Ends loading: every tensor whose name begins with `prefix` must have been read.
    ///
    /// # Errors
    ///
    /// [`FileError::UnexpectedTensor`] names one that the model has no use for.
    pub(crate) fn finish(self, prefix: &str, architecture: &'static str) -> Result<(), FileError> {
        let unused = self
            .places
            .into_iter()
            // Angles, which old checkpoints hold, follow from the configuration.
            .find(|(name, _)| {
                name.starts_with(prefix) && !name.ends_with(".inv_freq") && !self.used.contains(name)
            });
        match unused {
            None => Ok(()),
            Some((name, place)) => Err(FileError::UnexpectedTensor {
                path: self.files[place.file].path.clone(),
                name,
                architecture,
            }),
        }
    }
}

/// How stored bytes become numbers.
#[derive(Clone, Copy)]
enum Decode {
    F32,
    F16,
    BF16,
}

impl Decode {
    fn of(stored: Dtype) -> Option<Self> {
        match stored {
            Dtype::F32 => Some(Self::F32),
            Dtype::F16 => Some(Self::F16),
            Dtype::BF16 => Some(Self::BF16),
            _ => None,
        }
    }

    /// The tensor that begins where the file stands.
    fn data<T: Element, const D: usize>(
        self,
        file: &mut File,
        shape: [usize; D],
        convert: impl Fn(f32) -> T,
    ) -> io::Result<TensorData> {
        let count = shape.iter().product();
        let numbers = match self {
            Self::F32 => read_numbers(file, count, |bytes| convert(f32::from_le_bytes(bytes))),
            Self::F16 => read_numbers(file, count, |bytes| convert(f16::from_le_bytes(bytes).to_f32())),
            Self::BF16 => read_numbers(file, count, |bytes| convert(bf16::from_le_bytes(bytes).to_f32())),
        }?;
        Ok(TensorData::new(numbers, shape))
    }
}

/// The next `count` numbers of `N` bytes each, read by chunks.
fn read_numbers<T, const N: usize>(
    file: &mut File,
    count: usize,
    convert: impl Fn([u8; N]) -> T,
) -> io::Result<Vec<T>> {
    let mut numbers = Vec::with_capacity(count);
    let mut chunk = vec![0; CHUNK.min(count * N)];
    while numbers.len() < count {
        let size = chunk.len().min((count - numbers.len()) * N);
        let bytes = &mut chunk[..size];
        file.read_exact(bytes)?;
        numbers.extend(bytes.as_chunks::<N>().0.iter().map(|bytes| convert(*bytes)));
    }
    Ok(numbers)
}
