"""HEIC files made on the spot: a writer of the container (ISO 23008-12), so that tests can say what a file
claims, and a few pictures that were encoded once, with x265, from drawings. (No package of the project
encodes HEVC.)
"""

import base64
import struct

_TILE_CONFIGURATION = base64.b64decode(
    """
    AQNwAAAAkAAAAAAAHvAA/P34+AAADwNgAAEAGEABDAH//wNwAAADAJAAAAMAAAMAHroCQGEAAQArQgEBA3AAAAMAkAAAAwAAAwAe
    oCCBBZbqSSmubgIaDAgAAAMAyAAAAwAIQGIAAQAHRAHBcrAiQA==
    """
)
_TILE = base64.b64decode(
    """
    AAAANigBrwngIzaiP//70X3//tzHof61s3SnH/Twfvv1Pq//4GANE//2tIgP7Xde/+mDHijsf2HtzA==
    """
)
# The words “Boarding pass” and “Gate 27”, 640 x 360, grey.
WORDS = base64.b64decode(
    """
    AAAAHGZ0eXBoZWl4AAAAAG1pZjFoZWl4bWlhZgAAAVBtZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAA
    ACJpbG9jAAAAAERAAAEAAQAAAAABdAABAAAAAAAADF4AAAAjaWluZgAAAAAAAQAAABVpbmZlAgAAAAABAABodmMxAAAAAA5waXRt
    AAAAAAABAAAA0GlwcnAAAACxaXBjbwAAAHRodmNDAQQIAAAAn/gAAAAAP/AA/Pz4+AAADwNgAAEAF0ABDAH//wQIAAADAJ/4AAAD
    AAA/ugJAYQABAChCAQEECAAAAwCf+AAAAwAAP8AUCAWllupJKa5sCAAAAwDIAAADAAhAYgABAAdEAcFysGJAAAAAE2NvbHJuY2x4
    AAEADQAGgAAAABRpc3BlAAAAAAAAAoAAAAFoAAAADnBpeGkAAAAAAQgAAAAXaXBtYQAAAAAAAAABAAEEgQIDBAAADGZtZGF0AAAM
    WigBrmmGALQaECjpAGTfE9L2n74DCV5VnwIq4BjitLQAAAMB6zW///5/lVy21mIZ6P4MIYfCHOJt9sVcFke9Q26AWBD6XMIpBuyu
    c3tjZj+9lHE3pQGsjP706chtdIkNUmhyRd4okSQJ+oIuJRLnc2BecFE0JVsFvok1IjYUnGRKScf+Nxsv1qCEekJgTwGIvtyhTeOR
    uKLRWY9YlcwEXxoL9xXOcwxBQO/gV1nBlwyv4Yx1DAADYv12+h6o3u+vHyzZbAakgyA/Ich8kaN7po392D6v9Ho+1xDfSXb5oc/i
    feave47vGW020v7bpAB/DAFNDvU2VIM79VDE7Lv9Sx9EzwKWXyMGEJixoCYAVJVwr7LH3aGnkZFB+rKVb6YvgcYgBG+6yWu6tmpc
    Kur+20sgaOcCB6E+mU6eczABGpI0XKutRuyRcyS/LV7g1t5oD+KI+xeKj7ailTBs/fHtsdkQFK0UMFHpOnPUxAUGMYaOulK6R9Pi
    mzktPXBrnGbUJfwy9dADnDZyF/GGXqSXOmZvFEnw8p0TpV0pLV+to6xyKsG/HidNYvlZbdPWT3nKf518wWb2Q6GyM/9krUIXtSae
    IsQyENfVffPfcJsErRbn6zj+YMfVQ/o0yuYhjYVvVQRBSwOncae1uRgCyLvGv2lxo6lcMj8cd8mweSzVbjqWgrhcYsjnT0l4V9dG
    UllCQUIwIgT3eUu47p2x8v4nlQlSE6h7s0U2q2Bn5IZ11QqiK0X3VT+SbfTsVm5Ku6weo9tO48BvgCojMHpz22Yz5Hdqru+m1Yak
    O1aXd8RoT9zBBU233/7ipZyemBIdZ9zD95t4HRDB+aU3XL8jgtq2V36GTINlei8ylYlwU0j0DASi0RFFAOcycXD49ygybPL7y465
    JZWDf9fg3ii22mjyT3Yreg+17gdCtcfEEaVIysKrL04O1LIIcpb+jIcrJA7RaGiBgkQs6mo/LF0/EXSji/ZpmRvBmCxuldOUYLzb
    IDpmFGLCN6wu+0Z4hamVXCaaIJJN/rq7h1tKuDi8uIQJdxMJv5VxDAEfnSOGVHmxMqXrU9Vyjfw3/yAr1g6KB1qEXuvxhU11m8Zn
    ZkSJlP279GNnFS+W85eCr1Ji4QUk05AYyWDcAYgrG8srGNj7I6PJB/44LCsnvoxO39OMSX+b36gKIo88F+cm3NNuDPz2fTMZs3d7
    E6TLjKWxYZU1IRAgQ/gMrLNPhnwL8//+DIIGcmn3dkNA17lG3ziQNa+ROSQpQPcErZpWvHQJTGOAqGsZLGOhR1rZAOlPM6wP+KrE
    VLNYImdE3dghQ4weGCb9uxDS13aFLgUwlBPKHa3fQIPPV83wHVAthmmWva1nqo0hZKn8BitRfujFiPt+Q0A0tdSnyr6eAEJiWAJk
    ASFkQ4UrhFnMNwBxVE7aR7IOgwq2S9EZVGs1gOxnK42Ug5vOVw6CFCYrhhDb/Y8vXLHqD4Bkh24ixv8UsOl/OJr1gTrif/+/hKFe
    g4yYCIEU2rjwfTzRPQbjt2EEFkgcPNx7fAchgwhwkatMHizols1KKTs7p4Sf5ueix2VPL3LJSKE+sTcX7UGx0lhOX/Hp78ZdclfM
    UfImZ6uWYmYbVsXcNKK12IHy9YjGAnRLXOJgydJvQS22O42FlgKp8ZKGuwCLx+dsH8vOG1sKAFhWUfarGu/IEtqVIa5MGporjoxe
    xQqjz01ZnizLObTDSMBHKs4vqaAKDtOHxJUTr8tc1ApBiQGmDJReBckd7G1m9AsugR9JvPit7MibzJGH+A9tHxGRXUgVeurw5nIv
    MJAoxAyCp9R+I+bQ5GhcflnLblhd/n6Gj3mKfYeEKHNHueVMBXErTznMzr4UBJ2WGYZr28gZ1sT8b1UiJp9n+WYdpWkaqkHzorA1
    u7eHFQb29jJqkFVEuhf4nlwdkNotRl00Jr+ekrdStcOKdbN+WWxiLtw/TBEB5BW7Dn1Em0itnxxhkJezPh8YFsUnOVeTN7/F9+NR
    T5etnPjhqzbq2nBrbqBkvch3j8npao46faJglRIxnof6O9e7cr88jQDyk1OZn1NeNOBKfFaWB1Uli54CclO8MvWoXq4Pg7xAdg7m
    hYhQ1sIO4JreTxxy+VrBCIC7mA4XAuPa2In16+jpDSkUJtgDn/xzI+Jzu55hjn3miYZs3jjQa1M9ZLK5akJOEoUGsiXkU39HBGl1
    FauRQuCzuvLqqXR2sybV8UrGSh2OI2k0RuwJMRF5ThWHtgwyjGNzqbCOlPVwKkcIhVTEBFnpx955yO4aFrt/yf9gxGxPb3lm9lWL
    3OATd/1yodajPCUPIVtU5jodQRnWboZhjwpsSQSGa/XVM6PXyl33r3CDqSlEm7w7FP/smaUjRdnhQj6YmFaM8CYidVi1m/8Uz8TN
    fCHXQVgzxAhvQgXNuxR0zfN8ETpVH4soL+4DJFn3qMyuCyy5YMsTLDCzntE+IlTo9Ddy6us5kzNUR4Y8EDTpRie5GaAT/YagX4CV
    JYihS3r6TWib4G5zRiGkxvxVbPmQZ+dpV5j4Vi8EJCAgIZL/i7ob+1uqxB+udgcSLrRYjytIvvUgpCr+p04OKvj89lw1Norz7WR4
    jPLbXUKT9ZIe4jlprF5ESOtBNOUf4gdBL89T7o6CNvs36rfBcdhJWX7kdLLOgF0qZBc/tS3B0yBwKLZOsNiwsKn4P101MBfUYRGM
    olrKzdbvABPiupNvmH6eFBgYGXf3vH0PC+c2awjfB0WOprJ0KdyLT/fYqLBa0c+h5FVjfdlBVQQXte3Es/34lqJx6ILLg7kIZYMX
    Ijdxof1ZLhtryxkbMqMSlUtuQPGxAp5SCT+MZ8EimrB2tGY7UYy3MT40DG+JgXjxgr5vYERmdttoQOQxMqPSpq/RM141Kyvfb/jV
    gWjM6aHV0oXaraSGIwSSjaQdnOCQUOLmIMSYY54x7AuUG5pLdkTIT64vldGJ3xUBhyfH85q9glbCE0b5Te1DXWY72kCn2mOYEeQE
    H2y8eWM8o5WeyFkZeEmlhxmF2KvmfUAOk/hRUVq8BbohuwkqS0F9hDandsTgJX8hqACArC6a88tANffZNMMSfYs6oG0R31nxA+ch
    ZYppon3L+anIJ2EoUQq1ddGY9Jrgz8wHuyh/PjQXhhU6+/B0jWE9Gi44e0G60sOZOtTrwTUic7VT1vyNnMx0HM86pvDkPbWQVURR
    jQMu+iyPSBwVLcIBMfzCOAcHL8NJNkiymDAI8uUIczuvkcVnUvrbdKw+2Jm20OqC+2ERKxZqKh5NvRsPkWyfxmICeS7DfODxnLlL
    DAZqOy+hkV2mXwkBRoTEJYmeKt1PV1THoaqfZAKWadFTeoDDlnbXhlOWOtTpz5z93t2kVlcvDXohbVg0xX0gO5CGx3NsSrMnKSiB
    pzHxaC8Gf2Ixfpt54p8fUfOmCrm8ALM6DlUXY98udWgJ1Wz2Ryl8qhUHucFJ4VnCKNHfHpTQzKnFVgMFTh6VlP2018BCrWxZXtDY
    4fLQnujHc50rzbTkjHDXbUO5Gfg1AGuVfjoMAAAELDFv//yGiO8qHqjFTvlH5SidWf45Si85T+u560LCk7Dfw0JjFnT7OC1w8Ns/
    AES2xHkWHPf0R9qHj4bDmtc+MsHLPsFQlTLjTL0MM/cp+4edPmdJeBYNKysx/7kj9thxezjIxA8cimIE60jlfkrSN9Tlng97i5RM
    UGDzZ0lkoa+7mHajFSdXpitT2JzL0FTvpHKn4TAoxyEhQDscZGCaD1c5h+0gh+Ir9xZqj+zka6J+AwhWon4O7FmLx7pxovGLMB3k
    rsiyXQYBa2o687LpieQSORe+ij6mFtp9JpYt4fxyVHUNbkKhVqvi68MXGGngOA8o9y6rb88T849D2SgXnTl8e2J3Q8WNT2f6V2//
    boilRKj7bbiMjXlMYXGxR+jNYCTw/ttc3Yj23e4s1vPfRhOOjE5nWjVHotytGbeXWhAJopBcbdlLvkzinEE5VuiR7uQth+D65/Wz
    onhIPoPSAiNO+2Y6+jHPyW+XXh7ksZh76JzkKYGys/oTaXJIlCgTCx0UY1bC/wXJrpIFidS7QERJ5EY5NdONVnUgFxPTZwhttmlI
    QbFGkCwZ0c/jO0YN6L0prhPs1X9DeAJ2UAJ/Ab2JgUM+f6wxNrrWO69MtVaAAASUt5sUXptAAAADAAAj4JEEsCdAAAADAAADAAAD
    AAADAAADAAADAACFgA==
    """
)
# 300 x 200: red on the left, transparent on the right.
TRANSPARENT = base64.b64decode(
    """
    AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljbWlhZgAAAkZtZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAA
    ADRpbG9jAAAAAERAAAIAAQAAAAACagABAAAAAAAAAJQAAgAAAAAC/gABAAAAAAAAAFQAAAA4aWluZgAAAAAAAgAAABVpbmZlAgAA
    AAABAABodmMxAAAAABVpbmZlAgAAAAACAABodmMxAAAAAA5waXRtAAAAAAABAAABhWlwcnAAAAFfaXBjbwAAAHhodmNDAQNwAAAA
    kAAAAAAAPPAA/P34+AAADwNgAAEAGEABDAH//wNwAAADAJAAAAMAAAMAPLoCQGEAAQArQgEBA3AAAAMAkAAAAwAAAwA8oAmIDJ35
    bqSSmubgIaDAgAAADIAAAAMAhGIAAQAHRAHBcrBiQAAAABNjb2xybmNseAABAA0ABoAAAAAUaXNwZQAAAAAAAAEsAAAAyAAAABBw
    aXhpAAAAAAMICAgAAABzaHZjQwEECAAAAJ/4AAAAADzwAPz8+PgAAA8DYAABABdAAQwB//8ECAAAAwCf+AAAAwAAPLoCQGEAAQAn
    QgEBBAgAAAMAn/gAAAMAADzAJiAycvlupJKa5sCAAAAMgAAAAwCEYgABAAdEAcFysGJAAAAADnBpeGkAAAAAAQgAAAAnYXV4QwAA
    AAB1cm46bXBlZzpoZXZjOjIwMTU6YXV4aWQ6MQAAAAAeaXBtYQAAAAAAAAACAAEEgQIDBAACBIUDBocAAAAaaXJlZgAAAAAAAAAO
    YXV4bAACAAEAAQAAAPBtZGF0AAAAkCgBrxMh5BEf5qhw0//+JpR//Trnh+nl0tJ5vZDua7Or/tU9ylNdQL/4w9s7BSZxFZA1gICB
    sxQoG1YFB7nL6SDvZj2G7VRgPAADYAAAAwC8gKMCKW0oF0A1UMpeQAC/AAAGLJMAAMdSBZrOpmAAAAMAAVPKCcAAAAMAAAMAAAMA
    AFTzwAAAAwAAAwAAAwCLgAAAAFAoAa4mQ1BJEMP0KfUP3TL1f2iMiIly34c8WMRrM2LuYCmQ8yUyWa+YTC2cXtYBMQFTWQ1cgN63
    nGOB4V2E/IHaTRBIQIEjgCFAApFNmAxJ6A==
    """
)
# 300 x 200 with 10 bits a channel: half bright grey on the left, red on the right.
TEN_BITS = base64.b64decode(
    """
    AAAAHGZ0eXBoZWl4AAAAAG1pZjFoZWl4bWlhZgAAAVVtZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAA
    ACJpbG9jAAAAAERAAAEAAQAAAAABeQABAAAAAAAAAWEAAAAjaWluZgAAAAAAAQAAABVpbmZlAgAAAAABAABodmMxAAAAAA5waXRt
    AAAAAAABAAAA1WlwcnAAAAC2aXBjbwAAAHdodmNDAQQIAAAAnbgAAAAA//AA/P36+gAADwNgAAEAF0ABDAH//wQIAAADAJ24AAAD
    AAD/ugJAYQABACxCAQEECAAAAwCduAAAAwAA/6AJiAyd7ZbqSSmubgIaDAgAAAMAyAAAAwAIQGIAAQAGRAHBcYsSAAAAE2NvbHJu
    Y2x4AAEADQAGgAAAABRpc3BlAAAAAAAAASwAAADIAAAAEHBpeGkAAAAAAwoKCgAAABdpcG1hAAAAAAAAAAEAAQSBAgMEAAABaW1k
    YXQAAAFdKAGvBbII2RgVgEt6r8pCP1vfMO6O7INZitp7A/+Bn/4lFxE9DAQDI2WNljZY2V/E67K/yJHkJ+OjxQASYDb9AU+fy+eU
    82cddwI1oVn2jeefxXnNOY6qK1BQSUFBBOvmM0F8LQSPA4pjizE02uXQKzDArIKAl7lEIVw2Hd3Zp98saZcyjaJN05hrTmE5LUsM
    2pre0RW5AEI8RJmU30wQJTA8vf/hNgPIB27xcYE2H04R6wT0CrvHc+tiskGiqQaEFRb8lV7R3Iju4iG5Nq8EIlcSA1xHcKUIPDHA
    AAADAAADAALmFGO5egABpAAN/kFglN7yAAADAAADAAATUAAAAwAAG5DJpkbm9IaAAAADAAADAppdILiRa3b22AAAAwAACbvw7dch
    VsQVlwCE8R24oe5P1KI/UfzfESmQf9F/h/7f4XwvDR5fFTx8VPFTSAAAAwAAAwAAAwAAAwDSgA==
    """
)

SIDE = 64  # of `_TILE`: red over blue on the left, white on the right


def heic(
    properties=(),
    *,
    size=(SIDE, SIDE),
    brands=(b"heic", b"mif1", b"heic"),
    tile=_TILE,
    columns=0,
    rows=0,
    whole=None,
):
    """A HEIC of one tile, or of a grid of `columns` x `rows` tiles that all have the same bytes.

    `properties` are boxes that change how the picture is shown, as `turned` and `mirrored` make them; `size`
    is what each tile claims, and `whole` what the grid claims.
    """
    number = columns * rows
    shape = (_box(b"hvcC", _TILE_CONFIGURATION), _extent(*size))
    if not number:
        items, data = [(1, b"hvc1", tile)], tile
        owned = {1: [*shape, *properties]}
        references = b""
    else:
        width, height = whole or (columns * size[0], rows * size[1])
        grid = struct.pack(">BBBBII", 0, 1, (rows - 1) & 255, (columns - 1) & 255, width, height)
        items = [(1, b"grid", grid), *((2 + at, b"hvc1", tile) for at in range(number))]
        data = grid + tile
        owned = {1: [_extent(width, height), *properties], **{2 + at: list(shape) for at in range(number)}}
        references = _references(b"dimg", 1, [2 + at for at in range(number)])
    return _file(brands, items, data, owned, references)


def derived_from_itself():
    """A grid whose only tile is the grid."""
    grid = struct.pack(">BBBBII", 0, 1, 0, 0, SIDE, SIDE)
    return _file(
        (b"heic", b"mif1", b"heic"),
        [(1, b"grid", grid)],
        grid,
        {1: [_extent(SIDE, SIDE)]},
        _references(b"dimg", 1, [1]),
    )


def turned(quarters):
    """A property: turned counter-clockwise by so many quarters."""
    return _box(b"irot", bytes([quarters]))


def mirrored(axis):
    """A property: mirrored, left and right (1) or top and bottom (0)."""
    return _box(b"imir", bytes([axis]))


def _file(brands, items, data, owned, references):
    """`items`: id, type and content of each; `owned`: the boxes of each item's properties, by its id."""
    boxes = list(dict.fromkeys(box for found in owned.values() for box in found))
    entries = b"".join(
        struct.pack(">HB", item, len(found)) + b"".join(bytes([1 + boxes.index(box)]) for box in found)
        for item, found in owned.items()
    )
    kinds = b"".join(_box(b"infe", struct.pack(">BxxxHH4sx", 2, item, 0, kind)) for item, kind, _ in items)
    head = _box(b"ftyp", brands[0] + bytes(4) + b"".join(brands[1:]))

    def meta(start):
        places = b"".join(
            struct.pack(">HHHII", item, 0, 1, start + data.index(content), len(content))
            for item, _, content in items
        )
        return _box(
            b"meta",
            bytes(4)
            + _box(b"hdlr", bytes(8) + b"pict" + bytes(13))
            + _box(b"pitm", bytes(4) + struct.pack(">H", 1))
            + _box(b"iloc", bytes(4) + struct.pack(">BBH", 0x44, 0, len(items)) + places)
            + _box(b"iinf", bytes(4) + struct.pack(">H", len(items)) + kinds)
            + _box(
                b"iprp",
                _box(b"ipco", b"".join(boxes))
                + _box(b"ipma", bytes(4) + struct.pack(">I", len(owned)) + entries),
            )
            + (_box(b"iref", bytes(4) + references) if references else b""),
        )

    return head + meta(len(head) + len(meta(0)) + 8) + _box(b"mdat", data)


def _references(kind, item, others):
    return _box(
        kind, struct.pack(">HH", item, len(others)) + b"".join(struct.pack(">H", other) for other in others)
    )


def _extent(width, height):
    return _box(b"ispe", struct.pack(">xxxxII", width, height))


def _box(kind, content):
    return struct.pack(">I4s", 8 + len(content), kind) + content
